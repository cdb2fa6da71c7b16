package zkconn

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// maxFrame bounds what a server may send at once: it stores no more than 1 MB a node. Only a
// listing that was asked for may be longer, up to maxListing: those are a million contenders.
const (
	maxFrame   = 4 << 20
	maxListing = 64 << 20
)

// keepBuffer is how large a buffer a connection keeps between frames.
const keepBuffer = 16 << 10

// wire is the net.Conn that the client sees. It passes whole frames both ways and
// keeps the books on them. The client writes each frame with one Write from one
// goroutine at a time, and reads from one goroutine.
type wire struct {
	raw   net.Conn
	epoch *Epoch
	addr  string

	in   *bufio.Reader
	buf  []byte // the frame being delivered
	rest []byte // what of it the client has not read yet

	// writing is held by whoever puts a frame on raw. It is a channel because a
	// goroutine that waits for a mutex stops the clock of a synctest bubble.
	writing chan struct{}

	mu       sync.Mutex
	open     bool // the handshake is over
	greeting time.Time
	sent     map[int32]sentRequest
	pings    []time.Time           // send times of unanswered pings, oldest first
	own      map[int32]*ownRequest // see send
	order    []int32               // xids in own, oldest first, but for heartbeats
	backlog  []unsent
	closed   bool
}

// sentRequest is what a reply is matched with.
type sentRequest struct {
	at time.Time
	op int32
}

// newWire wraps a fresh connection. The handshake must end by deadline: the
// client reads the connect reply without any deadline of its own.
func newWire(raw net.Conn, e *Epoch, addr string, deadline time.Time) *wire {
	_ = raw.SetDeadline(deadline) // a connection without deadlines is still bounded by the lease clock
	return &wire{
		raw: raw, epoch: e, addr: addr,
		in:      bufio.NewReaderSize(raw, 16<<10),
		writing: make(chan struct{}, 1),
		sent:    make(map[int32]sentRequest),
		own:     make(map[int32]*ownRequest),
	}
}

// Write implements net.Conn. b is exactly one frame. The send time is taken
// before the frame leaves: the lease clock must never be ahead of the server.
func (w *wire) Write(b []byte) (int, error) {
	if w.note(b, time.Now()) {
		b = w.greet(b)
	}
	return w.put(b)
}

// greet writes into the handshake what the session has seen, so that a server which lags
// behind refuses it: only so are reads in order across connections. The client knows of
// answers to its own requests only.
func (w *wire) greet(b []byte) []byte {
	const at, end = 8, 16 // behind the frame's length and the protocol's version
	if len(b) < end {
		return b
	}
	b = slices.Clone(b)
	zxid := max(int64(binary.BigEndian.Uint64(b[at:end])), w.epoch.seen.Load())
	binary.BigEndian.PutUint64(b[at:end], uint64(zxid))
	return b
}

// put writes one frame, not interleaved with frames of the wire's own. The client
// sets its own deadline before and takes it off after each write; it is set here
// instead, where no other write can come in between.
func (w *wire) put(b []byte) (int, error) {
	w.writing <- struct{}{}
	defer func() { <-w.writing }()
	w.limitWrite(2 * w.epoch.cfg.Timeout / 3)
	n, err := w.raw.Write(b)
	if err != nil {
		w.fail(err)
	}
	return n, err
}

// note enters an outgoing frame of the client's into the books, and reports whether it is the
// handshake.
func (w *wire) note(b []byte, now time.Time) (greeting bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		w.greeting = now
		return true
	}
	r := &juteReader{b: b}
	r.int32()
	xid, op := r.int32(), r.int32()
	if r.err != nil {
		return false
	}
	if xid == xidPing {
		w.pings = append(w.pings, now)
		return false
	}
	w.sent[xid] = sentRequest{at: now, op: op}
	return false
}

// inject sends a frame that the client knows nothing of.
func (w *wire) inject(body []byte) error {
	frame := appendFrame(nil, body)
	if len(body) >= 4 && int32(binary.BigEndian.Uint32(body)) == xidPing {
		w.note(frame, time.Now())
	}
	_, err := w.put(frame)
	return err
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		if err := w.next(); err != nil {
			w.fail(err)
			return 0, err
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// next reads one frame, checks it, enters it into the books and makes it
// available to the client, unless it answers a frame of our own.
func (w *wire) next() error {
	var prefix [4]byte
	if _, err := io.ReadFull(w.in, prefix[:]); err != nil {
		return err
	}
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	n := int64(binary.BigEndian.Uint32(prefix[:]))
	limit, least := maxFrame, headerSize
	switch {
	case !open:
		limit, least = maxConnectReply, 0
	case n > maxFrame && w.listing():
		limit = maxListing
	}
	if n < int64(least) || n > int64(limit) {
		return w.violation(fmt.Errorf("a frame of %d bytes (at most %d are taken)", int32(n), limit))
	}
	if cap(w.buf) > keepBuffer && n < keepBuffer {
		w.buf = nil // one long listing must not be remembered for ever
	}
	w.buf = append(w.buf[:0], prefix[:]...)
	if err := w.fill(n); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = fmt.Errorf("connection cut in the middle of a frame: %w", io.ErrUnexpectedEOF)
		}
		return err
	}
	if !open {
		return w.greeted(w.buf[4:])
	}
	return w.received(w.buf[4:])
}

// fill appends n bytes to the buffer, which grows as they come: a length that is only promised costs
// no more than maxFrame.
func (w *wire) fill(n int64) error {
	for n > 0 {
		have, more := len(w.buf), min(n, maxFrame)
		w.buf = slices.Grow(w.buf, int(more))[:have+int(more)]
		if _, err := io.ReadFull(w.in, w.buf[have:]); err != nil {
			return err
		}
		n -= more
	}
	return nil
}

// listing reports whether what comes next is the answer to a listing of our own.
func (w *wire) listing() bool {
	head, err := w.in.Peek(4)
	if err != nil {
		return false // which the read that follows meets too
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.own[int32(binary.BigEndian.Uint32(head))]
	return r != nil && (r.op == opGetChildren || r.op == opGetChildren2)
}

// greeted handles the connect reply.
func (w *wire) greeted(body []byte) error {
	reply, err := parseConnectReply(body)
	if err != nil {
		return w.violation(err)
	}
	_ = w.raw.SetDeadline(time.Time{})
	w.mu.Lock()
	w.open = true
	sent := w.greeting
	w.mu.Unlock()
	if reply.id != 0 {
		// Before the client can send anything: it never re-sends credentials itself
		// (its way of doing so can wedge it for ever).
		for _, a := range w.epoch.cfg.Auth {
			if err := w.inject(authRequest(a)); err != nil {
				return err
			}
		}
	}
	if err := w.epoch.greeted(w, reply, sent); err != nil {
		return err
	}
	w.rest = w.buf
	return nil
}

// received handles any other frame, unless the connection was given up: what it still says
// must not be mistaken for news of the next one.
func (w *wire) received(body []byte) error {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	r := &juteReader{b: body}
	xid, zxid, code := r.int32(), r.int64(), r.int32()
	w.epoch.see(zxid)
	switch {
	case xid == xidEvent:
		kind, _, path := r.int32(), r.int32(), r.string()
		if r.err != nil {
			return w.violation(fmt.Errorf("malformed watch event: %w", r.err))
		}
		// In this goroutine, before anything that follows on the wire is looked at:
		// the queue relies on hearing of departures in the order of the server's history.
		w.epoch.hub.event(kind, string(path))
	case xid == xidPing:
		w.ponged()
		if err := w.overdue(); err != nil {
			return err
		}
	case xid == xidAuth:
		if code != 0 {
			w.epoch.client.refuse(fmt.Errorf("%w: %s answered the credentials with error %d", ErrAuth, w.addr, code))
		}
		return nil // the client would only log it
	default:
		return w.replied(xid, code, r.b)
	}
	w.rest = w.buf
	return nil
}

func (w *wire) ponged() {
	w.mu.Lock()
	var sent time.Time
	if len(w.pings) > 0 {
		sent, w.pings = w.pings[0], w.pings[1:]
	}
	w.mu.Unlock()
	if !sent.IsZero() {
		w.epoch.acknowledged(sent, false)
	}
}

func (w *wire) replied(xid, code int32, body []byte) error {
	if ok, err := w.answered(xid, code, body); ok {
		return err
	}
	w.mu.Lock()
	s, ok := w.sent[xid]
	delete(w.sent, xid)
	w.mu.Unlock()
	if !ok {
		// A second answer to one request may mean that it was applied twice. Nobody
		// could find the twin, so the session must end, and the twin with it.
		return w.violation(fmt.Errorf("an answer to a request that was not sent or was answered already (xid %d)", xid))
	}
	if code == 0 {
		if err := checkReply(s.op, body); err != nil {
			return w.violation(err)
		}
	}
	w.epoch.acknowledged(s.at, led(s.op, code))
	if s.op == opClose {
		w.epoch.mu.Lock()
		w.epoch.ended = true
		w.epoch.mu.Unlock()
	}
	w.expiredBy(code)
	w.rest = w.buf
	return nil
}

// expiredBy ends the epoch if the code of an answer says that the session is gone.
func (w *wire) expiredBy(code int32) {
	if code == codeSessionExpired {
		w.epoch.lose(fmt.Errorf("%w: %s says that it expired", ErrOver, w.addr))
	}
}

// codeSessionExpired in the header of a reply: the session is gone.
const codeSessionExpired = -112

// violation makes err one that ends the session if there is one: what else the
// stream said cannot be trusted either.
func (w *wire) violation(err error) error {
	return &violationError{fmt.Errorf("%s broke the protocol: %w", w.addr, err)}
}

type violationError struct{ err error }

func (e *violationError) Error() string { return e.err.Error() }
func (e *violationError) Unwrap() error { return e.err }

// fail closes the connection once, and tells the epoch why.
func (w *wire) fail(err error) {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	open := w.open
	w.mu.Unlock()
	if again {
		return
	}
	// Closing comes last: that of a connection which takes nothing may block, and everybody
	// waits to hear that it is over.
	w.epoch.disconnected(w, err, open)
	w.drop(err)
	shut(w.raw)
}

// shut closes a connection. TLS would first say goodbye, for up to five seconds.
func shut(c net.Conn) {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		secured.NetConn().Close()
	}
	c.Close()
}

// Close implements net.Conn.
func (w *wire) Close() error {
	w.fail(net.ErrClosed)
	return nil
}

// The client's deadlines count only after the handshake, which has its own.

func (w *wire) SetDeadline(t time.Time) error {
	return w.deadline(t, w.raw.SetReadDeadline)
}

func (w *wire) SetReadDeadline(t time.Time) error {
	return w.deadline(t, w.raw.SetReadDeadline)
}

// SetWriteDeadline does nothing: see put.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// limitWrite bounds the next write, whose turn it is. A handshake has a deadline.
func (w *wire) limitWrite(d time.Duration) {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	if open {
		_ = w.raw.SetWriteDeadline(time.Now().Add(d)) // fails on a closed connection, as the write will
	}
}

func (w *wire) deadline(t time.Time, set func(time.Time) error) error {
	w.mu.Lock()
	pass := w.open && !w.closed
	w.mu.Unlock()
	if !pass {
		return nil
	}
	return set(t)
}

func (w *wire) LocalAddr() net.Addr  { return w.raw.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr { return w.raw.RemoteAddr() }
