package zkconn

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// wire is the net.Conn that the client library sees. It passes whole frames in both
// directions, and keeps account of the requests in them. The library writes each
// frame with one Write, from one goroutine at a time, and reads from one goroutine.
type wire struct {
	raw     net.Conn
	session *session
	owner   owner
	addr    string

	target target
	limit  time.Duration // for each step of the handshake

	in   *bufio.Reader
	buf  []byte // the frame being delivered
	rest []byte // the part of it that the client library has not read yet

	// writing is held by the goroutine that puts a frame on raw. It is a channel
	// because a goroutine that waits for a mutex stops the clock of a synctest bubble.
	writing chan struct{}

	identity presence // guarded by the lock of the client's identity

	unlinked chan struct{} // closed once the owner has heard of its end

	met  context.Context // ends when the handshake has succeeded, or the connection has failed
	meet context.CancelFunc

	mu       sync.Mutex
	open     bool                   // the handshake is over
	greeting time.Time              // send time of the handshake
	sent     map[int32]*sentRequest // requests without an answer, by xid
	asked    []*sentRequest         // those in sent and some answered ones behind the first, oldest first
	order    []int32                // xids of our own requests in sent, except heartbeats, the oldest first
	pings    []time.Time            // send times of unanswered pings, oldest first
	auths    []*sentRequest         // credentials of our own without an answer, oldest first
	backlog  []unsent               // see send
	closed   bool
}

// owner is what hears of the fate of a connection. The calls come in wire order, in the
// goroutine that reads or closes the connection.
type owner interface {
	greeted(w *wire, r connectReply, sent time.Time) error // before the client library sees the reply
	refused(w *wire, r connectReply, err error)            // the server refuses the credentials, of a session that it made
	expired(w *wire)                                       // the server says that the session is gone
	stored(zxid int64) error                               // the server answered a change with this zxid
	disconnected(w *wire, err error, open bool)            // once, when the connection has ended
}

// keepBuffer is the size up to which a connection keeps its buffer between frames.
const keepBuffer = 2 << 10

// newWire wraps a new connection. The handshake must end by deadline: the
// client library reads the connect reply without any deadline of its own.
func newWire(raw net.Conn, s *session, o owner, addr string, deadline time.Time) *wire {
	_ = raw.SetDeadline(deadline) // a connection without deadlines is still bounded by the lease clock
	w := &wire{
		raw: raw, session: s, owner: o, addr: addr,
		in:      bufio.NewReaderSize(raw, keepBuffer),
		writing: make(chan struct{}, 1), unlinked: make(chan struct{}),
		sent: make(map[int32]*sentRequest),
	}
	w.met, w.meet = context.WithCancel(context.Background())
	return w
}

// firstOwn is where the xids of our own requests begin; the client library counts from 1.
const firstOwn = 1 << 30

// sentRequest is a request that waits for its answer.
type sentRequest struct {
	at   time.Time
	op   int32
	size int  // in bytes
	beat bool // a heartbeat, which may be answered at any time
	done bool // answered
	// end is called once, in the goroutine that reads or closes the
	// connection. It is nil for a request of the client library's.
	end func(body []byte, err error)
	// turn, if not nil, returns the body. It is called when the request is about to be written, so what it finds is in the
	// order of the wire. If the request is not needed any more, it is not sent, and ends with ErrNotSent. turn must not block.
	turn func() (body []byte, needed bool)
}

// unsent is a request that waits for its turn to be written.
type unsent struct {
	r    *sentRequest
	body []byte
}

// answer ends a request of our own; for one of the client library's it does nothing.
func (r *sentRequest) answer(body []byte, err error) {
	if r.end != nil {
		r.end(body, err)
	}
}

// expect notes r as sent. It fails on a closed connection. No xid is used twice in a session, whichever connection it is
// on: servers find the request to which a committed transaction belongs by session and xid, so a transaction that was
// under way when the connection was lost would answer a new request with its xid (seen on real servers).
func (w *wire) expect(r *sentRequest) (xid int32, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || !w.open {
		return 0, false
	}
	xid = firstOwn + 1 + int32((w.session.xids.Add(1)-1)%(firstOwn-2)) // no request waits for as long as a round takes
	w.noteSent(xid, r)
	if !r.beat {
		w.order = append(w.order, xid)
	}
	return xid, true
}

// noteSent notes a request that is about to be sent. mu is held.
func (w *wire) noteSent(xid int32, r *sentRequest) {
	w.sent[xid] = r
	w.asked = append(w.asked, r)
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
		// A second answer to one request may mean that it was applied twice. No call
		// would find the second node, so the session must end, and the node with it.
		return nil, w.violation(fmt.Errorf("an answer to a request that was not sent or was answered already (xid %d)", xid))
	case r.end == nil || r.beat:
		return r, nil
	case len(w.order) == 0 || w.order[0] != xid:
		// Servers answer one session in the order of its requests. So an earlier request, or
		// its answer, has been lost on the way, and its caller would wait for ever.
		return r, fmt.Errorf("%s answered a request before those that were sent earlier", w.addr)
	}
	w.order = w.order[1:]
	return r, nil
}

// overdue is called when a heartbeat was answered. A request that waits for much longer than that was lost on the
// way, or its answer was. The next connection finds out what became of it.
func (w *wire) overdue() error {
	limit := 2 * w.session.Timeout() / 3
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

// put writes one frame, with a deadline of its own: a deadline of the client library could hit another frame.
func (w *wire) put(b []byte) (int, error) {
	w.writing <- struct{}{}
	n, err := w.putNow(b, 2*w.session.expected()/3)
	if err != nil {
		w.fail(err)
	}
	return n, err
}

// putNow writes one frame for the goroutine that holds writing, which it gives back. During the
// handshake the deadline of newWire holds. After an error the caller must call fail.
func (w *wire) putNow(b []byte, limit time.Duration) (int, error) {
	if w.state(func() bool { return w.open }) {
		_ = w.raw.SetWriteDeadline(time.Now().Add(limit)) // fails on a closed connection, as the write will
	}
	defer func() { <-w.writing }()
	return w.raw.Write(b)
}

// state reports a condition with mu held.
func (w *wire) state(is func() bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return is()
}

// hasGreeted reports whether the handshake has been sent, or is about to be.
func (w *wire) hasGreeted() bool { return w.state(func() bool { return !w.greeting.IsZero() }) }

// ending reports whether the connection has ended, and its owner may not have heard of that yet.
func (w *wire) ending() bool { return w.state(func() bool { return w.closed }) }

// fail closes the connection, once, and reports why to its owner.
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
	// The owner hears of it before the requests fail: a caller that
	// tries again then finds no connection, and waits for the next.
	w.owner.disconnected(w, err, open)
	close(w.unlinked)
	w.drop(err)
	shut(w.raw)
}

// drop fails every request that was not answered.
func (w *wire) drop(cause error) {
	w.mu.Lock()
	sent, others := w.sent, w.auths
	for _, at := range w.pings {
		others = append(others, ofPing(at))
	}
	w.sent, w.asked, w.auths, w.pings = nil, nil, nil, nil
	w.mu.Unlock()
	longest, ops := 0, map[int32]struct{}{}
	for _, r := range sent {
		if r.end != nil {
			longest = max(longest, r.size)
		}
		ops[r.op] = struct{}{}
	}
	if isClosed(cause) {
		w.session.most.closed(longest)
		for op := range ops {
			w.session.unknown.cut(op)
		}
	}
	lost := &unknownError{fmt.Errorf("the connection was lost before the answer: %w", cause)}
	for _, r := range others {
		w.report(r, 0, 0, lost)
	}
	for _, r := range sent {
		w.report(r, 0, 0, lost)
		r.answer(nil, lost)
	}
}

// shut closes a connection. With TLS it closes the connection underneath
// first: TLS would spend up to five seconds on a closing message.
func shut(c net.Conn) {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		secured.NetConn().Close()
	}
	c.Close()
}

// violation marks err as a breach of the protocol, which ends the session if
// there is one: nothing else that came on this connection can be trusted either.
func (w *wire) violation(err error) error {
	return &violationError{fmt.Errorf("%s broke the protocol: %w", w.addr, err)}
}

// Close implements net.Conn.
func (w *wire) Close() error {
	w.fail(net.ErrClosed)
	return nil
}

// The client library's deadlines count only after the handshake, which has its own. Then the library
// sets one of 2/3 of the session timeout before each frame that it reads: the answers to its pings, one every
// third of the timeout, keep the connection; those to our own requests do not reach the library.

func (w *wire) SetDeadline(t time.Time) error { return w.SetReadDeadline(t) }

func (w *wire) SetReadDeadline(t time.Time) error {
	if w.state(func() bool { return w.open && !w.closed }) {
		return w.raw.SetReadDeadline(t)
	}
	return nil
}

// SetWriteDeadline does nothing: see put.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

func (w *wire) LocalAddr() net.Addr  { return w.raw.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr { return w.raw.RemoteAddr() }
