package zkconn

import (
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// Requests of our own go directly onto the client library's connection, past its queue. There are three
// reasons. A caller can stop waiting for one at any time, and no goroutine hangs in it. Error codes arrive as
// they are. And two switches of goroutine are saved in each direction. The library never learns of these
// requests. Servers answer the requests of one session in the order in which they arrived, whoever made them.

// firstOwn is where the xids of our own requests begin; the client library counts from 1.
const firstOwn = 1 << 30

// sentRequest is a request that waits for its answer.
type sentRequest struct {
	at   time.Time
	op   int32
	size int  // in bytes, of a request of our own
	beat bool // a heartbeat, which may be answered at any time
	done bool // answered
	// end is called once, in the goroutine that reads or closes the
	// connection. It is nil for a request of the client library's.
	end func(body []byte, err error)
	// turn, if not nil, returns the body. It is called when the request is about to be written, so what it finds is in the
	// order of the wire. If the request is not needed any more, it is not sent, and ends with ErrNotSent. turn must not block.
	turn func() (body []byte, needed bool)
}

// prefixSize is what comes before the body of a request: length, xid and operation.
const prefixSize = 12

// writeLimit is how long a connection may refuse to take a small request. Mostly it takes
// that long only if the other side has stopped reading and every buffer is full. Then
// another connection is better, and callers must not be held up. But it may also be that the link is narrow. So after
// the first time a small request has a third of the session timeout, too, and its caller does not wait for the write.
const (
	writeLimit = 100 * time.Millisecond
	smallFrame = 64 << 10
)

// send puts a request on the wire, behind all that were sent before. A caller that sets a watch and then
// reads relies on this order. r.end is called exactly once; it must not block. send itself blocks for
// writeLimit at most, or for a third of the session timeout if the request is large. If another goroutine
// is in the middle of a write, or the link is narrow, send does not wait: it leaves its request to the backlog.
func (w *wire) send(r *sentRequest, body []byte) {
	w.mu.Lock()
	if len(w.backlog) == 0 {
		if !w.epoch.narrow.Load() && w.take() {
			w.mu.Unlock()
			w.sendNow(r, body)
			return
		}
		go w.sendBacklog()
	}
	w.backlog = append(w.backlog, unsent{r, body})
	w.mu.Unlock()
}

// take takes the turn to write, if nobody has it.
func (w *wire) take() bool {
	select {
	case w.writing <- struct{}{}:
		return true
	default:
		return false
	}
}

// unsent is a request that waits for its turn to be written.
type unsent struct {
	r    *sentRequest
	body []byte
}

// sendBacklog writes the requests of the backlog. Each stays in the backlog while it is
// written: as long as the backlog is not empty, send appends to it, so nothing overtakes it.
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

// sendNow is send for the goroutine whose turn it is to write: it holds writing.
func (w *wire) sendNow(r *sentRequest, body []byte) {
	if r.turn != nil {
		var needed bool
		if body, needed = r.turn(); !needed {
			<-w.writing
			r.end(nil, ErrNotSent)
			return
		}
	}
	r.size = prefixSize + len(body)
	r.at = time.Now() // before the frame leaves: see leaseClock
	xid, ok := w.expect(r)
	if !ok {
		<-w.writing
		r.end(nil, ErrNotSent)
		return
	}
	frame := make([]byte, 0, prefixSize+len(body))
	frame = jute.AppendInt32(frame, int32(8+len(body)))
	frame = jute.AppendInt32(frame, xid)
	frame = jute.AppendInt32(frame, r.op)
	frame = append(frame, body...)
	w.putWithin(frame)
}

// putWithin puts a frame of our own on the wire, within the limit for it. Whoever finds that the connection was lost sends the
// request again, so nothing may be too slow for ever.
func (w *wire) putWithin(frame []byte) {
	limit := w.epoch.span() / 3
	brief := len(frame) <= smallFrame && !w.epoch.narrow.Load() && writeLimit < limit
	if brief {
		limit = writeLimit
	}
	w.putNow(frame, limit, func() {
		if brief {
			w.epoch.narrow.Store(true)
		} else {
			w.epoch.client.most.late(len(frame))
		}
	})
}

// expect notes r as sent. It fails on a closed connection.
//
// No xid is used twice in a session, whichever connection it is on: servers find the request to which a
// committed transaction belongs by session and xid. A transaction that was under way when the connection
// was lost would be taken for a new request with its xid, and answer it (seen on real servers).
func (w *wire) expect(r *sentRequest) (xid int32, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || !w.open {
		return 0, false
	}
	for {
		xid = firstOwn + 1 + int32((w.epoch.xids.Add(1)-1)%(firstOwn-2))
		if w.sent[xid] == nil {
			break
		}
	}
	w.await(xid, r)
	if !r.beat {
		w.order = append(w.order, xid)
	}
	return xid, true
}

// replied handles the answer to a request. An answer to the client library's own request is passed on to it.
func (w *wire) replied(xid int32, zxid int64, code int32, body []byte) error {
	r, err := w.takeOut(xid)
	if r == nil {
		return err
	}
	if err == nil && changed(r.op, code) {
		err = w.epoch.compare(zxid)
	}
	if err == nil && code == 0 {
		if err = checkReply(r.op, body); err != nil {
			err = w.violation(err)
		}
	}
	if err != nil {
		r.answer(nil, &unknownError{err})
		return err
	}
	w.epoch.client.most.answered(r.size)
	if r.op == opMulti && expiredIn(body) {
		code = codeSessionExpired
	}
	w.epoch.client.unknown.answered(r.op, code)
	// The clock gets the answer before the caller, which may at once ask for what this answer proves.
	if r.op != opAuth { // servers do not count credentials as a sign of life
		w.epoch.answered(r.at, led(r.op, code))
	}
	if code == codeSessionExpired {
		w.epoch.expired(w.addr)
	}
	if r.op == opClose {
		w.epoch.nothingRemains()
	}
	switch {
	case r.end == nil:
		w.pass()
	case code == 0:
		r.end(body, nil)
	case code == codeSessionExpired:
		r.end(nil, ErrOver)
	default:
		r.end(nil, classify(codeError(code)))
	}
	if r.beat {
		return w.overdue()
	}
	return nil
}

// takeOut takes the request that was answered off the list of those that wait for an answer.
func (w *wire) takeOut(xid int32) (*sentRequest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.sent[xid]
	delete(w.sent, xid)
	if r != nil {
		r.done = true
	}
	for len(w.asked) > 0 && w.asked[0].done {
		w.asked[0] = nil // the slice keeps what is before its begin
		w.asked = w.asked[1:]
	}
	switch {
	case r == nil:
		// A second answer to one request may mean that it was applied twice. Nobody
		// could find the second node, so the session must end, and the node with it.
		return nil, w.violation(fmt.Errorf("an answer to a request that was not sent or was answered already (xid %d)", xid))
	case r.end == nil || r.beat:
		return r, nil
	case len(w.order) == 0 || w.order[0] != xid:
		// Servers answer one session in the order of its requests. So an earlier request, or
		// its answer, has been lost on the way, and whoever waits for it would wait for ever.
		return r, fmt.Errorf("%s answered a request before those that were sent earlier", w.addr)
	}
	w.order = w.order[1:]
	return r, nil
}

// answer ends a request of our own; for one of the client library's it does nothing.
func (r *sentRequest) answer(body []byte, err error) {
	if r.end != nil {
		r.end(body, err)
	}
}

// overdue is called when a heartbeat was answered. If a request waits for much longer
// than that, it was lost on the way, or its answer was: by something between us and the
// server that loses single messages. The next connection finds out what became of it.
func (w *wire) overdue() error {
	limit := 2 * w.epoch.Timeout() / 3
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 || w.sent[w.order[0]] == nil {
		return nil
	}
	if late := time.Since(w.sent[w.order[0]].at); late > limit {
		return fmt.Errorf("%s answers heartbeats, but not a request of %v ago", w.addr, late.Round(time.Millisecond))
	}
	return nil
}

// drop fails every request that was not answered.
func (w *wire) drop(cause error) {
	w.mu.Lock()
	sent := w.sent
	w.sent, w.asked = nil, nil
	w.mu.Unlock()
	if isClosed(cause) {
		longest := 0
		for _, r := range sent {
			longest = max(longest, r.size)
		}
		w.epoch.client.most.closed(longest)
	}
	w.epoch.client.unknown.lost(sent, cause)
	for _, r := range sent {
		r.answer(nil, &unknownError{fmt.Errorf("the connection was lost before the answer: %w", cause)})
	}
}
