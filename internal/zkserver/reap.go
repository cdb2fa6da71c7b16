package zkserver

import (
	"time"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// nothingToReap tells that no node can become due for removal.
func (s *Server) nothingToReap() bool { return s.tree.containers.len() == 0 && s.tree.ttls.len() == 0 }

// armReaper sets the timer for the next look at the containers and the nodes with a time to live, if there are any.
func (s *Server) armReaper() {
	if s.reapTimer != nil || s.nothingToReap() || s.stopped || s.closed || s.clock.manual || !s.leads() {
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

// reap removes what has outlived its use, in the order of the real server's hash table. Each removal is
// a transaction of its own, so that one whose node has got a child meanwhile fails alone.
func (s *Server) reap() {
	due := newNameSet(16)
	for _, path := range s.tree.containers.list() {
		if s.abandoned(s.tree.nodes[path]) {
			due.add(path)
		}
	}
	for _, path := range s.tree.ttls.list() {
		if s.outdated(s.tree.nodes[path]) {
			due.add(path)
		}
	}
	for _, path := range due.list() {
		s.submit(&request{call: wire.Call{Op: wire.OpDeleteContainer, Path: path}, internal: true, received: s.now()})
	}
}

// abandoned tells whether a container has had children and has none any more, or never got one in the
// time that it is given for that.
func (s *Server) abandoned(n *node) bool {
	if n.children.len() > 0 {
		return false
	}
	return n.stat.cversion > 0 || s.cfg.ContainerUnused > 0 && s.age(n) > s.cfg.ContainerUnused
}

// outdated tells whether a node has no children and has not been written for longer than its time to live.
func (s *Server) outdated(n *node) bool {
	return n.children.len() == 0 && s.age(n) > ttlOf(n.stat.owner)
}

// age is the time since the node was last written, in whole milliseconds of the time of day.
func (s *Server) age(n *node) time.Duration {
	return time.Duration(s.now().UnixMilli()-n.stat.mtime) * time.Millisecond
}
