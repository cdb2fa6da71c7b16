package engine

import (
	"net"
	"time"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/watch"
)

// New returns a running server that listens nowhere yet.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	now := time.Now()
	s := &Server{
		cfg: cfg, log: logs.New(cfg.Logger), clock: &clock{start: now, manual: cfg.ManualClock},
		history: newHistory(cfg.Tick), tree: tree.New(), watches: watch.New(cfg.Release), lastSession: firstSessionID(now, 1),
		links: map[int64]*link{}, conns: map[*conn]struct{}{}, clients: map[int64]map[*conn]struct{}{}, listeners: map[net.Listener]struct{}{}, holding: map[*heldQueue]struct{}{},
		done: make(chan struct{}),
	}
	s.order = alone{s}
	s.mu.misuse = cfg.OnMisuse
	return s
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
