package zkconn

import (
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// Requests of our own go onto the client's connection directly, past its queue: a
// caller can stop waiting for one at any time without a goroutine being stuck in
// it, error codes arrive as they are, and two switches of goroutine are saved each
// way. The client never learns of them. Servers answer one session's requests in
// the order in which they arrived, whoever made them.

// firstOwn is where the xids of our own requests begin; the client counts from 1.
const firstOwn = 1 << 30

// ownRequest is a request of ours that waits for its answer.
type ownRequest struct {
	at   time.Time
	op   int32
	beat bool                         // a heartbeat, which may be answered at any time
	end  func(body []byte, err error) // called once, in the goroutine that reads or closes
	arms []watchKey                   // the watches that a success sets
}

// writeLimit is how long a connection may refuse to take a small request. It takes
// that long only when the other side has stopped reading and every buffer is full;
// then another connection is better, and callers must not be held up.
const (
	writeLimit = 100 * time.Millisecond
	smallFrame = 64 << 10
)

// send puts a request on the wire, behind all that were sent before: whoever sets a watch and
// then reads counts on that. r.end is called exactly once; it must not block. send itself
// blocks for writeLimit at most: if somebody else is in the middle of a write, it leaves its own
// to another goroutine.
func (w *wire) send(r *ownRequest, body []byte) {
	w.mu.Lock()
	if len(w.backlog) == 0 {
		select {
		case w.writing <- struct{}{}:
			w.mu.Unlock()
			w.sendNow(r, body)
			return
		default:
			go w.sendBacklog()
		}
	}
	w.backlog = append(w.backlog, unsent{r, body})
	w.mu.Unlock()
}

// unsent is a request that waits for its turn to be written.
type unsent struct {
	r    *ownRequest
	body []byte
}

// sendBacklog writes what has been left to it. Each stays in the backlog while it is written, so
// that nothing overtakes it.
func (w *wire) sendBacklog() {
	for {
		w.writing <- struct{}{}
		w.mu.Lock()
		next := w.backlog[0]
		w.mu.Unlock()
		w.sendNow(next.r, next.body)
		w.mu.Lock()
		w.backlog = w.backlog[1:]
		done := len(w.backlog) == 0
		w.mu.Unlock()
		if done {
			return
		}
	}
}

// sendNow is send for whoever's turn it is to write.
func (w *wire) sendNow(r *ownRequest, body []byte) {
	r.at = time.Now() // before the frame leaves: see leaseClock
	xid, ok := w.expect(r)
	if !ok {
		<-w.writing
		r.end(nil, ErrNotSent)
		return
	}
	frame := make([]byte, 0, 12+len(body))
	frame = jute.AppendInt32(frame, int32(8+len(body)))
	frame = jute.AppendInt32(frame, xid)
	frame = jute.AppendInt32(frame, r.op)
	frame = append(frame, body...)
	if len(frame) <= smallFrame {
		w.limitWrite(writeLimit)
	} else {
		w.limitWrite(w.epoch.cfg.Timeout / 3)
	}
	_, err := w.raw.Write(frame)
	<-w.writing
	if err != nil {
		w.fail(err) // ends r, among others
	}
}

// expect enters r into the books; it fails on a closed connection.
//
// No xid comes twice in a session, whichever connection it is on: servers find the request that
// a committed transaction belongs to by session and xid. One that was under way when the
// connection was lost would be taken for the new one, and answer it (seen on real servers).
func (w *wire) expect(r *ownRequest) (xid int32, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || !w.open {
		return 0, false
	}
	for {
		xid = firstOwn + 1 + int32((w.epoch.xids.Add(1)-1)%(firstOwn-2))
		_, ours := w.own[xid]
		_, theirs := w.sent[xid]
		if !ours && !theirs {
			break
		}
	}
	w.own[xid] = r
	if !r.beat {
		w.order = append(w.order, xid)
	}
	return xid, true
}

// answered handles a reply to a request of our own; ok is false if it is none.
func (w *wire) answered(xid, code int32, body []byte) (ok bool, err error) {
	w.mu.Lock()
	r, ok := w.own[xid]
	delete(w.own, xid)
	skipped := ok && !r.beat && (len(w.order) == 0 || w.order[0] != xid)
	if ok && !r.beat && !skipped {
		w.order = w.order[1:]
	}
	w.mu.Unlock()
	if !ok {
		return false, nil
	}
	if skipped {
		// Servers answer one session in the order of its requests, so one before this, or its
		// answer, has been lost on the way: whoever waits for it would wait for ever.
		err := fmt.Errorf("%s answered a request before those that were sent earlier", w.addr)
		r.end(nil, &unknownError{err})
		return true, err
	}
	if code == 0 {
		if err := checkReply(r.op, body); err != nil {
			err = w.violation(err)
			r.end(nil, &unknownError{err})
			return true, err
		}
	}
	w.epoch.acknowledged(r.at, led(r.op, code))
	if code == 0 {
		for _, key := range r.arms {
			w.epoch.hub.armed(key)
		}
	}
	w.expiredBy(code)
	if r.beat {
		r.end(body, nil)
		return true, w.overdue()
	}
	switch code {
	case 0:
		r.end(body, nil)
	case codeSessionExpired:
		r.end(nil, ErrOver)
	default:
		r.end(nil, classify(codeError(code)))
	}
	return true, nil
}

// overdue is asked when a heartbeat was answered. A request that waits for much longer than that has
// been lost on the way, or its answer has: by something between us and the server that
// does not deliver all or nothing. Another connection finds out what became of it.
func (w *wire) overdue() error {
	limit := 2 * w.epoch.Timeout() / 3
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 || w.own[w.order[0]] == nil {
		return nil
	}
	if late := time.Since(w.own[w.order[0]].at); late > limit {
		return fmt.Errorf("%s answers heartbeats, but not a request of %v ago", w.addr, late.Round(time.Millisecond))
	}
	return nil
}

// drop ends every request of our own that was not answered.
func (w *wire) drop(cause error) {
	w.mu.Lock()
	own := w.own
	w.own = nil
	w.mu.Unlock()
	for _, r := range own {
		r.end(nil, &unknownError{fmt.Errorf("the connection was lost before the answer: %w", cause)})
	}
}
