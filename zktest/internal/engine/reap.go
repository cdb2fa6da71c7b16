package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// armReaper sets the timer for the next look at the containers and the nodes with a time to live, if there are any.
func (s *Server) armReaper() {
	if s.reapTimer != nil || s.tree.Reapable() == 0 || s.stopped || s.closed || s.clock.manual || !s.leads() {
		return
	}
	every := s.cfg.ContainerInterval
	s.reapTimer = time.AfterFunc(every-s.elapsed()%every, s.reapDue)
}

func (s *Server) reapDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.closed || !s.leads() {
		return
	}
	s.reapTimer = nil
	if !s.idle() {
		s.reap()
	}
	s.armReaper()
}

// reap removes what has outlived its use. Each removal is
// a transaction of its own, so that one whose node has got a child meanwhile fails alone.
func (s *Server) reap() {
	for _, path := range s.tree.Due(s.now().UnixMilli(), s.cfg.ContainerUnused) {
		s.order.submit(&request{call: wire.Call{Op: wire.OpDeleteContainer, Path: path}, internal: true, received: s.now()})
	}
}
