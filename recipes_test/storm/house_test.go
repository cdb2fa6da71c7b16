package storm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zksync"
)

// servers are three names of the one server: a client that loses its connection tries the next at once.
var servers = []string{"127.0.0.1:2181", "127.0.0.1:2182", "127.0.0.1:2183"}

// house is a process. When its session is closed another one begins in its place.
type house struct {
	w      *world
	index  int
	tapped bool

	timeout time.Duration
	closing atomic.Bool // and another one begins

	mu     sync.Mutex
	s      *zksync.Session
	conn   *zk.Conn // if tapped
	line   *line    // of that
	things map[string]any
	harped time.Time // until when servers gave answers that settle nothing
	age    int       // how many sessions were closed
	ids    map[int64]bool
}

func newHouse(w *world, index int, tapped bool) *house {
	h := &house{w: w, index: index, tapped: tapped, ids: map[int64]bool{}}
	h.timeout = []time.Duration{4, 6, 10}[w.rnd.IntN(3)] * time.Second
	h.open()
	return h
}

func (h *house) String() string {
	if h.tapped {
		return fmt.Sprintf("h%dt", h.index)
	}
	return fmt.Sprintf("h%d", h.index)
}

// open connects, however long that takes.
func (h *house) open() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var conn *zk.Conn
	var s *zksync.Session
	var err error
	if h.tapped {
		conn = h.connect()
		s, err = zksync.Tap(ctx, conn)
	} else {
		s, err = zksync.Connect(ctx, servers[0], zksync.WithDialer(h.w.srv.DialContext), zksync.WithTimeout(h.timeout))
	}
	if err != nil {
		h.w.must(false, "%s cannot begin: %v", h, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.s, h.conn, h.things = s, conn, map[string]any{}
}

// connect is what a program has that taps its own connection.
func (h *house) connect() *zk.Conn {
	ready := make(chan struct{})
	var once sync.Once
	n := &line{h: h}
	h.mu.Lock()
	h.line = n
	h.mu.Unlock()
	conn, _, err := zk.Connect(servers, h.timeout, zk.WithDialer(n.dial), zk.WithLogger(silent{}), zk.WithLogInfo(false),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession {
				once.Do(func() { close(ready) })
			}
		}))
	if err != nil {
		h.w.must(false, "zk.Connect: %v", err)
		return nil
	}
	<-ready
	return conn
}

// silent is a log that nobody reads.
type silent struct{}

func (silent) Printf(string, ...any) {}

// line is the network of one tapped connection.
type line struct {
	h *house

	ending atomic.Bool // Close has been called

	mu     sync.Mutex
	last   net.Conn
	closed bool
}

// wire is one connection of it. From Close on it does not tell the client library that something could not be written. When
// a handshake ends after Close, the library asks for its watches and tells that request of three failures: that Close
// came first, that it could not be written, and that the connection has ended. It has room for two, and waits for ever.
type wire struct {
	net.Conn
	line *line
}

func (c wire) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && c.line.ending.Load() {
		_ = c.Conn.Close() // the reader is told
		return len(b), nil
	}
	return n, err
}

// dial closes the client's previous connection first: it forgets to when its session has expired.
func (n *line) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	n.h.w.meter.dialled(n.h)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hangUp()
	if n.closed {
		return nil, net.ErrClosed
	}
	c, err := n.h.w.srv.Dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	n.last = c
	return wire{c, n}, nil
}

// close ends a handshake that hangs in a partition; the client would wait for it.
func (n *line) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.hangUp()
}

func (n *line) hangUp() {
	if n.last != nil {
		_ = n.last.Close()
		n.last = nil
	}
}

// session is that of the moment.
func (h *house) session() *zksync.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.s
}

// id is that of the ZooKeeper session of the moment.
func (h *house) id() int64 { return h.session().ID() }

func (h *house) years() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.age
}

// unsettle notes that requests will get answers for d that settle nothing.
func (h *house) unsettle(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(d); until.After(h.harped) {
		h.harped = until
	}
}

// unsettledSince tells whether such answers may be the cause of what was told since a time. It may be a goroutine that was there
// before who got them, and went on trying for a second or two.
func (h *house) unsettledSince(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.Before(h.harped.Add(2 * time.Second))
}

// tie is what a process has on the servers by its session of a time. That of a tapped connection goes on for a while after Close has
// begun, but what it had goes.
type tie struct {
	h       *house
	session int64
	age     int
}

func (h *house) tie() tie { return tie{h, h.id(), h.years()} }

func (t tie) holds() bool {
	return (!t.h.tapped || t.h.years() == t.age) && t.h.w.lives(t.session)
}

// thing is an object that the goroutines of a process share, until its session is closed.
func thing[T any](h *house, key string, make func(s *zksync.Session) T) T {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.things[key].(T)
	if !ok {
		t = make(h.s)
		h.things[key] = t
	}
	return t
}

// close ends the session.
func (h *house) close() {
	h.mu.Lock()
	s, conn, line := h.s, h.conn, h.line
	h.age++
	h.mu.Unlock()
	if err := s.Close(); err != nil {
		h.w.must(false, "%s: Close: %v", h, err)
	}
	hangUp(conn, line)
}

// hangUp closes a connection that was tapped, if there is one.
func hangUp(conn *zk.Conn, line *line) {
	if conn != nil {
		line.ending.Store(true)
		conn.Close()
		line.close()
	}
}

// newAdmin is somebody who removes nodes by hand.
func newAdmin(w *world) *house {
	h := &house{w: w, timeout: 10 * time.Second}
	h.conn = h.connect()
	return h
}

// removes deletes a node, in the background.
func (h *house) removes(node string) {
	h.w.healing.Go(func() { _ = h.conn.Delete(node, -1) }) // it may have gone meanwhile
}

// calm takes away what the network still does.
func (h *house) calm() {
	h.mu.Lock()
	ids := h.ids
	h.ids = map[int64]bool{}
	h.mu.Unlock()
	for id := range ids {
		h.w.srv.Delay(id, 0, 0)
	}
}

// slow gives a latency to the network of the session of the moment.
func (h *house) slow(there, back time.Duration) {
	id := h.id()
	h.mu.Lock()
	h.ids[id] = true
	h.mu.Unlock()
	h.w.srv.Delay(id, there, back)
}

// errOwn is what functions of ours return, or panic with, on purpose.
var errOwn = errors.New("on purpose")
