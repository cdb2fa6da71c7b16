package engine

import (
	"net"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Server is an in-process ZooKeeper. Make one with [New]; all methods may be called
// concurrently.
type Server struct {
	cfg   Config
	log   *logs.Log
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

func (s *Server) now() time.Time { return s.clock.now() }

func (s *Server) elapsed() time.Duration { return s.clock.elapsed() }

// leads reports whether the server orders transactions, which one on its own always does.
func (s *Server) leads() bool { return s.order.leads() }

// idle reports whether the server does nothing by itself: no commits, no expiry.
func (s *Server) idle() bool { return s.frozen || s.stopped || s.closed || !s.order.commits() }

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

// RunHook runs what somebody else has written, from one of the hooks of [Config]. If that calls the
// server, [Config.OnMisuse] is told.
func (s *Server) RunHook(f func()) {
	before := s.mu.hook.Swap(goroutine())
	defer s.mu.hook.Store(before)
	f()
}
