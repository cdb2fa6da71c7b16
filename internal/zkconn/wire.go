package zkconn

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// wire is the net.Conn that the client library sees. It passes whole frames in both
// directions, and keeps account of the requests in them. The library writes each
// frame with one Write, from one goroutine at a time, and reads from one goroutine.
type wire struct {
	raw   net.Conn
	epoch *Epoch
	addr  string

	target target
	limit  time.Duration // for each step of the handshake

	in   *bufio.Reader
	buf  []byte // the frame being delivered
	rest []byte // the part of it that the client library has not read yet

	// writing is held by the goroutine that puts a frame on raw. It is a channel
	// because a goroutine that waits for a mutex stops the clock of a synctest bubble.
	writing chan struct{}

	identity presence // guarded by the lock of the client's identity

	unlinked chan struct{} // closed once the epoch has heard of its end

	met  context.Context // ends when the handshake has succeeded, or the connection has failed
	meet context.CancelFunc

	mu       sync.Mutex
	open     bool                   // the handshake is over
	greeting time.Time              // send time of the handshake
	sent     map[int32]*sentRequest // requests without an answer, by xid
	asked    []*sentRequest         // those in sent and some answered ones behind the first, oldest first
	order    []int32                // xids of our own requests in sent, except heartbeats, the oldest first
	pings    []time.Time            // send times of unanswered pings, oldest first
	backlog  []unsent               // see send
	closed   bool
}

// newWire wraps a new connection. The handshake must end by deadline: the
// client library reads the connect reply without any deadline of its own.
func newWire(raw net.Conn, e *Epoch, addr string, deadline time.Time) *wire {
	_ = raw.SetDeadline(deadline) // a connection without deadlines is still bounded by the lease clock
	w := &wire{
		raw: raw, epoch: e, addr: addr,
		in:      bufio.NewReaderSize(raw, keepBuffer),
		writing: make(chan struct{}, 1), unlinked: make(chan struct{}),
		sent: make(map[int32]*sentRequest),
	}
	w.met, w.meet = context.WithCancel(context.Background())
	return w
}

// Write implements net.Conn. b is exactly one frame. The send time is taken before
// the frame leaves. In the other order the lease clock could be ahead of the server.
func (w *wire) Write(b []byte) (int, error) {
	greeting, err := w.note(b, time.Now())
	if err != nil {
		return 0, err
	}
	w.epoch.sendBuffer.owned(w.epoch.conn, false) // a new buffer does not change b
	if greeting {
		b = w.greet(b)
	}
	n, err := w.put(b)
	if err == nil && !greeting { // after an error the goroutine of the library that sends ends
		w.epoch.sendBuffer.owned(w.epoch.conn, true)
	}
	return n, err
}

// silence is how old the oldest request is that is not answered; 0 if there is none.
func (w *wire) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	oldest := now
	if len(w.asked) > 0 {
		oldest = w.asked[0].at
	}
	if len(w.pings) > 0 && w.pings[0].Before(oldest) {
		oldest = w.pings[0]
	}
	return now.Sub(oldest)
}

// ping sends a ping of our own.
func (w *wire) ping() {
	b := jute.AppendFrame(nil, requestHeader(xidPing, opPing))
	_, _ = w.note(b, time.Now())
	_, _ = w.put(b) // a failed write ends the connection
}

// greet writes into the handshake the greatest zxid that the session has seen, so that a server that
// lags behind it refuses the connection. Without this, a read on the next connection could show an
// older state than one before. The client library knows only the answers to its own requests.
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

// put writes one frame. writing keeps it apart from the wire's own frames. The client
// library sets its own deadline before each write and removes it after. That deadline
// is ignored, and set here instead, where no other write can come in between.
func (w *wire) put(b []byte) (int, error) {
	w.writing <- struct{}{}
	return w.putNow(b, 2*w.epoch.span()/3, func() {})
}

// putNow is put for the goroutine that holds writing, which it
// gives back. During the handshake the deadline of newWire holds. It calls late
// before the connection fails because the limit has passed.
func (w *wire) putNow(b []byte, limit time.Duration, late func()) (int, error) {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	if open {
		_ = w.raw.SetWriteDeadline(time.Now().Add(limit)) // fails on a closed connection, as the write will
	}
	n, err := w.raw.Write(b)
	<-w.writing
	if errors.Is(err, os.ErrDeadlineExceeded) {
		late()
	}
	if err != nil {
		w.fail(err) // also fails the request of this frame
	}
	return n, err
}

// note keeps account of a frame that the client library sends. It reports whether the frame is the handshake. That must not
// go out any more, which is the error, once Stop has begun: it would make a session that nobody ends (awaitGreeting).
func (w *wire) note(b []byte, now time.Time) (greeting bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		if w.epoch.client.running.Err() != nil {
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
		w.await(xid, &sentRequest{at: now, op: op})
	}
	return false, nil
}

// await notes a request that is about to be sent. mu is held.
func (w *wire) await(xid int32, r *sentRequest) {
	w.sent[xid] = r
	w.asked = append(w.asked, r)
}

// hasGreeted reports whether the handshake has been sent, or is about to be.
func (w *wire) hasGreeted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.greeting.IsZero()
}

// fail closes the connection, once, and tells the epoch why.
func (w *wire) fail(err error) {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	open := w.open
	w.mu.Unlock()
	if again {
		return
	}
	w.meet()
	// The epoch hears of it before the requests fail: a caller that
	// tries again then finds no connection, and waits for the next.
	w.epoch.disconnected(w, err, open)
	close(w.unlinked)
	w.drop(err)
	shut(w.raw)
}

// ending reports whether the connection has ended, and the epoch may not have heard of that yet.
func (w *wire) ending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// shut closes a connection. With TLS it closes the connection underneath
// first: TLS would spend up to five seconds on a closing message.
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

// The client library's deadlines count only after the handshake, which has its own.
// After the handshake the library sets a deadline of 2/3 of the session timeout before
// each frame that it reads: that ends a silent connection. Answers to our own requests
// do not reach the library. Those to its pings, one every third of the timeout, do.

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

// violation marks err as a breach of the protocol, which ends the session if
// there is one: nothing else that came on this connection can be trusted either.
func (w *wire) violation(err error) error {
	return &violationError{fmt.Errorf("%s broke the protocol: %w", w.addr, err)}
}
