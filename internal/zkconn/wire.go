package zkconn

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
)

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
	sent     map[int32]*sentRequest
	order    []int32     // xids of our own in sent, oldest first, but for heartbeats
	pings    []time.Time // send times of unanswered pings, oldest first
	backlog  []unsent    // see send
	closed   bool
}

// newWire wraps a fresh connection. The handshake must end by deadline: the
// client reads the connect reply without any deadline of its own.
func newWire(raw net.Conn, e *Epoch, addr string, deadline time.Time) *wire {
	_ = raw.SetDeadline(deadline) // a connection without deadlines is still bounded by the lease clock
	return &wire{
		raw: raw, epoch: e, addr: addr,
		in:      bufio.NewReaderSize(raw, 16<<10),
		writing: make(chan struct{}, 1),
		sent:    make(map[int32]*sentRequest),
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
	return w.putNow(b, 2*w.epoch.cfg.Timeout/3)
}

// putNow is put for whoever's turn it is; the turn ends with it. A handshake has a deadline of its own.
func (w *wire) putNow(b []byte, limit time.Duration) (int, error) {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	if open {
		_ = w.raw.SetWriteDeadline(time.Now().Add(limit)) // fails on a closed connection, as the write will
	}
	n, err := w.raw.Write(b)
	<-w.writing
	if err != nil {
		w.fail(err) // ends the request, among others
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
	r := jute.Decode(b)
	r.Int32()
	xid, op := r.Int32(), r.Int32()
	switch {
	case r.Err() != nil || w.closed:
	case xid == xidPing:
		w.pings = append(w.pings, now)
	default:
		w.sent[xid] = &sentRequest{at: now, op: op}
	}
	return false
}

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

// The client's deadlines count only after the handshake, which has its own. After it the client library sets
// 2/3 of the session timeout before each frame that it reads: that ends a silent connection. Answers to requests of our own do
// not reach it, but those to its pings, one every third of the timeout, do.

func (w *wire) SetDeadline(t time.Time) error { return w.SetReadDeadline(t) }

func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	pass := w.open && !w.closed
	w.mu.Unlock()
	if !pass {
		return nil
	}
	return w.raw.SetReadDeadline(t)
}

// SetWriteDeadline does nothing: see put.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

func (w *wire) LocalAddr() net.Addr  { return w.raw.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr { return w.raw.RemoteAddr() }

// violation makes err one that ends the session if there is one: what else the
// stream said cannot be trusted either.
func (w *wire) violation(err error) error {
	return &violationError{fmt.Errorf("%s broke the protocol: %w", w.addr, err)}
}
