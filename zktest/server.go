package zktest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// Server is a ZooKeeper server for one test. Its methods may be called concurrently, but not from a hook.
// They fail the TB that they are given, else that of [Run].
//
// Only Wait..., Connect, Session, Serve and Close block, and what writes, until its commit.
type Server struct {
	zk   *engine.Server
	name string // of a member of an ensemble, in what WithVerbose prints
	tb   TB     // nil for a server that Start made
	opts options

	limit  *limit // of Run; nil outside of a bubble
	bubble bool   // made in a synctest bubble
	hooked sync.Once

	mu        sync.Mutex // taken inside the engine's lock by hooks: never call the engine with it held
	counts    counts
	owners    []*owner // of our own clients
	log       requestLog
	judges    []*judge
	expected  [][]*Interception // of each of them one is to act
	onExpired []func(int64, time.Time)
	onCommit  []func(Txn)
	onFirst   []func(Txn)   // for those that no other member of the ensemble has committed before
	changed   chan struct{} // closed at the next request or commit, then replaced; nil while nobody waits

	netMu    sync.Mutex
	listener net.Listener
	addr     string
	refusals int
	stopped  bool
	closed   bool
	serving  sync.WaitGroup
}

// Run starts a server that lives as long as the test: Cleanup closes it, and fails the test if sessions,
// ephemeral nodes or watches are left over.
func Run(t TB, opts ...Option) *Server {
	t.Helper()
	o, err := newOptions(opts)
	if err != nil {
		t.Fatal(err)
	}
	s := start(o)
	s.tb = t
	s.limit = newLimit(t, o.virtualLimit, s.stuck, s.Close)
	t.Cleanup(s.finish)
	return s
}

// Start starts a server without a test: the caller closes it, leftovers are not checked, and what would fail
// a test panics.
func Start(opts ...Option) *Server {
	o, err := newOptions(opts)
	if err != nil {
		panic(err.Error())
	}
	return start(o)
}

func start(o options) *Server {
	s := newServer(o)
	s.zk = engine.New(s.config())
	return s
}

func newServer(opts options) *Server {
	return &Server{opts: opts, counts: newCounts(), bubble: inBubble()}
}

// config is what the engine is to do, and to tell the server.
func (s *Server) config() engine.Config {
	cfg := s.opts.cfg
	cfg.Intercept = s.intercept
	cfg.InterceptEvent = s.interceptEvent
	cfg.OnRequest = s.onRequest
	cfg.OnCommit = s.committed
	cfg.OnExpired = s.expired
	cfg.OnConn = s.connection
	cfg.OnMisuse = s.calledFromHook
	return cfg
}

// errorf reports that the test asked for something impossible.
func (s *Server) errorf(format string, args ...any) {
	if s.tb == nil {
		panic(fmt.Sprintf(format, args...))
	}
	s.tb.Helper()
	s.tb.Errorf(format, args...)
}

// fatalf is errorf where the test cannot go on. It does not return.
func (s *Server) fatalf(format string, args ...any) {
	if s.tb == nil {
		panic(fmt.Sprintf(format, args...))
	}
	s.tb.Helper()
	s.tb.Fatalf(format, args...)
}

// finish is the Cleanup of Run.
func (s *Server) finish() {
	s.tb.Helper()
	left := ""
	if !s.limit.stop() {
		left = s.leftovers()
		checkStruck(s.tb, s)
	}
	s.Close()
	if left != "" {
		s.tb.Errorf("%s\n%s", leftOver, left)
	}
	s.opts.tellSeed(s.tb)
}

// Close drops all connections and ends all goroutines. The server's state can still be read. A server of
// [Run] need not be closed.
func (s *Server) Close() {
	s.zk.Close() // ends Serve as well
	s.netMu.Lock()
	s.stopped, s.closed = true, true
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
	}
	s.netMu.Unlock()
	s.serving.Wait()
	s.wake() // who waits for something would wait in vain
}

var errClosed = errors.New("zktest: the server is closed")

func (s *Server) isClosed() bool {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	return s.closed
}

// Dial opens a connection in memory, as a go-zookeeper Dialer, and ignores its arguments. Client and server
// must be in the same bubble, or in none; else it panics.
func (s *Server) Dial(network, addr string, _ time.Duration) (net.Conn, error) {
	return s.dial(network, nil)
}

func (s *Server) dial(network string, joined func(id int64)) (net.Conn, error) {
	s.mustBeHere()
	s.netMu.Lock()
	defer s.netMu.Unlock()
	if s.stopped || s.refusals > 0 {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	client, server := net.Pipe()
	s.zk.ServeClient(server, joined)
	return client, nil
}

// ServeConn serves c, and closes it. It returns at once.
func (s *Server) ServeConn(c net.Conn) {
	s.mustBeHere()
	s.zk.ServeConn(c)
}
