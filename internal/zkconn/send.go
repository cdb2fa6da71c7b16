package zkconn

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// Requests of our own go directly onto the client library's connection, past its queue: a caller can stop waiting at any
// time, error codes arrive as they are, and two switches of goroutine are saved in each direction. Servers answer the
// requests of one session in the order in which they arrived.

// writeLimit is how long a connection may refuse to take a small request. Usually the other side has then stopped
// reading, and another connection is better. But the link may also be narrow. So after the first
// time a small request has a third of the session timeout, too, and its caller does not wait for the write.
const (
	writeLimit = 100 * time.Millisecond
	smallFrame = 64 << 10
)

// send puts a request on the wire, behind all that were sent before: watches and reads rely on this order. r.end is
// called exactly once, and must not block. send blocks for writeLimit at most, or for a third of the session timeout if
// the request is large. If another goroutine is writing, or the link is narrow, it leaves the request to the backlog.
func (w *wire) send(r *sentRequest, body []byte) {
	w.mu.Lock()
	if len(w.backlog) == 0 {
		if !w.session.narrow.Load() && w.take() {
			w.mu.Unlock()
			w.sendNow(unsent{r, body})
			return
		}
		go w.sendBacklog()
	}
	w.backlog = append(w.backlog, unsent{r, body})
	w.mu.Unlock()
}

// take takes the turn to write, if it is free.
func (w *wire) take() bool {
	select {
	case w.writing <- struct{}{}:
		return true
	default:
		return false
	}
}

// sendBacklog writes the requests of the backlog. Each stays in the backlog while it is
// written: as long as the backlog is not empty, send appends to it, so nothing overtakes it.
func (w *wire) sendBacklog() {
	for done := false; !done; {
		w.writing <- struct{}{}
		w.mu.Lock()
		next := w.backlog[0]
		w.mu.Unlock()
		w.sendNow(next)
		w.mu.Lock()
		w.backlog = w.backlog[1:]
		done = len(w.backlog) == 0
		w.mu.Unlock()
	}
}

// sendNow is send for the goroutine whose turn it is to write: it holds writing.
func (w *wire) sendNow(u unsent) {
	r, body, needed := u.r, u.body, true
	if r.turn != nil {
		body, needed = r.turn()
	}
	var xid int32
	if needed {
		r.size = prefixSize + len(body)
		r.at = time.Now() // before the frame leaves: see leaseClock
		xid, needed = w.expect(r)
	}
	if !needed {
		<-w.writing
		r.end(nil, ErrNotSent)
		return
	}
	frame := make([]byte, 0, prefixSize+len(body))
	frame = jute.AppendInt32(frame, int32(8+len(body)))
	frame = jute.AppendInt32(frame, xid)
	frame = jute.AppendInt32(frame, r.op)
	w.putWithin(append(frame, body...))
}

// putWithin writes a request of our own, within the limit for it. A caller that finds that the connection was
// lost sends the request again, so nothing may be too slow for ever.
func (w *wire) putWithin(frame []byte) {
	limit := w.session.expected() / 3
	brief := len(frame) <= smallFrame && !w.session.narrow.Load() && writeLimit < limit
	if brief {
		limit = writeLimit
	}
	_, err := w.putNow(frame, limit)
	late := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case late && brief:
		w.session.narrow.Store(true)
	case late:
		w.session.most.late(len(frame))
	}
	if err != nil {
		w.fail(err) // also fails the request of this frame
	}
}

// Write implements net.Conn. b is exactly one frame. The send time is taken before
// the frame leaves. In the other order the lease clock could be ahead of the server.
func (w *wire) Write(b []byte) (int, error) {
	greeting, err := w.note(b, time.Now())
	if err != nil {
		return 0, err
	}
	s := w.session
	s.sendBuffer.owned(s.conn, false) // a new buffer does not change b
	if greeting {
		b = w.greet(b)
	}
	n, err := w.put(b)
	if err == nil && !greeting { // after an error the goroutine of the library that sends ends
		s.sendBuffer.owned(s.conn, true)
	}
	return n, err
}

// note keeps account of a frame that the client library sends. It reports whether the frame is the handshake. That must not
// go out any more, which is the error, once Stop has begun: it would make a session that nothing ends (awaitGreeting).
func (w *wire) note(b []byte, now time.Time) (greeting bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		if w.session.running.Err() != nil {
			return true, ErrClosed
		}
		w.greeting = now
		return true, nil
	}
	r := jute.Decode(b)
	r.Int32()
	xid, op := r.Int32(), r.Int32()
	switch {
	case r.Err() != nil || w.closed:
	case xid == xidPing:
		w.pings = append(w.pings, now)
	default:
		w.noteSent(xid, &sentRequest{at: now, op: op, size: len(b)})
	}
	return false, nil
}

// greet writes into the handshake the greatest zxid that the session has seen, of which the client library knows only a
// part, so that a server that lags behind refuses the connection: a read there could show an older state. See also unseen.
func (w *wire) greet(b []byte) []byte {
	b = slices.Clone(b)
	zxid := b[8:16] // behind the frame's length and the protocol's version
	newest := max(int64(binary.BigEndian.Uint64(zxid)), w.session.Seen())
	binary.BigEndian.PutUint64(zxid, uint64(newest))
	return b
}

// ping sends a ping of our own.
func (w *wire) ping() {
	b := jute.AppendFrame(nil, requestHeader(xidPing, opPing))
	_, _ = w.note(b, time.Now())
	_, _ = w.put(b) // a failed write ends the connection
}
