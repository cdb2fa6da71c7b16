package engine

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Config says how a server behaves. The zero value is a server with the defaults of a
// standalone ZooKeeper.
type Config struct {
	// Release is what the server behaves as; wire.DefaultRelease if zero.
	Release wire.Release
	// Tick is the unit of session expiry; 2 s if zero. Sessions expire on tick boundaries, counted
	// from New.
	Tick time.Duration
	// MinTimeout and MaxTimeout bound session timeouts; 2 and 20 ticks if zero.
	MinTimeout, MaxTimeout time.Duration
	// ContainerInterval is how often empty containers and nodes whose time to live is over are removed; 60 s if zero.
	ContainerInterval time.Duration
	// ContainerUnused is the time after which a container that never had a child is removed too; never if zero.
	ContainerUnused time.Duration
	// ExtendedTypes allows nodes with a time to live, which a server must be configured for.
	ExtendedTypes bool
	// CommitLatency is the time between the arrival of a write and its commit; requests that
	// arrive meanwhile are in flight together. With zero a write is committed as it arrives.
	CommitLatency time.Duration
	// HandshakeTimeout is how long a connection may take for its first frame; 10 s if zero.
	HandshakeTimeout time.Duration
	// MaxFrame is the largest request accepted; 1 MB less one byte if zero, as in the real server.
	MaxFrame int
	// ManualClock lets the server's clock stand still but for Advance.
	ManualClock bool
	// FourLetterWords are the words that are answered; the others are refused by name. nil is all of them, as
	// is "*"; a real server's default is "srvr".
	FourLetterWords []string
	// Reordering is the longest that a reply or event is kept back; each by another time, drawn with the Seed.
	Reordering time.Duration
	Seed       uint64
	// Logger is told about refused and dropped connections; silent if nil.
	Logger *slog.Logger

	// Intercept judges each request before it runs. It is called without locks and may be
	// called by several connections at once; it must not block.
	Intercept func(*Request) Verdict

	// Heartbeat is the path whose sync clients use as a heartbeat, besides the ping: it overtakes what rules hold. None if empty.
	Heartbeat string

	// The hooks below run while the server's state is locked: they must be quick and must
	// not call the server.

	// InterceptEvent judges each watch event before it is sent, with Fate FateEventLost, or Hold.
	InterceptEvent func(Event) Verdict
	// OnRequest sees each request when it is finished, or lost, before its reply is sent.
	OnRequest func(Request)
	// OnCommit sees each transaction at the instant of its commit, in order, before any
	// reply or watch event leaves.
	OnCommit func(Txn)
	// OnMisuse is called when what RunHook runs calls the server.
	OnMisuse func()
	// OnConn sees connections come and go.
	OnConn func(ConnEvent)
	// OnExpired sees each session that expires, before its ephemerals go.
	OnExpired func(id int64, at time.Time)
}

func (cfg Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	if cfg.Release == (wire.Release{}) {
		cfg.Release, _ = wire.ReleaseOf(wire.DefaultRelease)
	}
	def(&cfg.Tick, 2*time.Second)
	def(&cfg.MinTimeout, 2*cfg.Tick)
	def(&cfg.MaxTimeout, 20*cfg.Tick)
	def(&cfg.ContainerInterval, time.Minute)
	def(&cfg.HandshakeTimeout, 10*time.Second)
	if cfg.MaxFrame <= 0 {
		cfg.MaxFrame = 1<<20 - 1
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// Server is an in-process ZooKeeper. Make one with [New]; all methods may be called
// concurrently.
type Server struct {
	cfg   Config
	log   *slog.Logger
	clock *clock
	stats counters

	*history // with the lock that guards what follows

	tree        *tree.Tree
	watches     *watch.Watches
	event       wire.EventFrame
	lastSession int64
	links       map[int64]*link
	conns       map[*conn]struct{}
	clients     map[int64]map[*conn]struct{} // those of conns that have presented a session id, by that
	listeners   map[net.Listener]struct{}
	holding     map[*heldQueue]struct{} // those with requests
	frozen      bool
	stopped     bool
	closed      bool
	epoch       int           // counts stops: nothing of an earlier one may still run
	done        chan struct{} // closed by Close

	reapTimer *time.Timer

	order order // alone, or in an ensemble

	// wg counts the goroutines of connections. It is only added to under mu while
	// closed is false, so that Close cannot miss one.
	wg sync.WaitGroup
}

// New returns a running server that listens nowhere yet.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	now := time.Now()
	s := &Server{
		cfg: cfg, log: cfg.Logger, clock: &clock{start: now, manual: cfg.ManualClock},
		history: newHistory(cfg.Tick), tree: tree.New(), watches: watch.New(cfg.Release), lastSession: firstSessionID(now, 1),
		links: map[int64]*link{}, conns: map[*conn]struct{}{}, clients: map[int64]map[*conn]struct{}{}, listeners: map[net.Listener]struct{}{}, holding: map[*heldQueue]struct{}{},
		done: make(chan struct{}),
	}
	s.order = alone{s}
	s.mu.misuse = cfg.OnMisuse
	return s
}

// spawn starts a goroutine that Close waits for. Callers hold mu.
func (s *Server) spawn(f func()) {
	if s.closed {
		return
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		f()
	}()
}

// Close drops all connections, ends all goroutines and forgets everything. It is
// idempotent.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	s.order.halted()
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// disconnectAll drops all connections, and what is held: nothing that came in so far runs any more.
func (s *Server) disconnectAll() {
	s.epoch++
	for c := range s.conns {
		c.abort()
	}
	for q := range s.holding {
		q.clear()
	}
}

// Stop takes the server off the network as a crash would: connections drop, writes that are not
// committed are lost, time stands still for sessions. Data and sessions stay. It has no effect on
// listeners: a connection that still comes in is closed at once.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stopped {
		return
	}
	s.stopped = true
	s.order.halted()
}

// Restart brings a stopped (or running) server back. With keep it has its data and
// sessions, which all get their full timeout again, as after a restart of a real server;
// without it is a new empty server.
func (s *Server) Restart(keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.order.halted()
	s.stopped, s.frozen = false, false
	s.order.restarted(keep)
}
