package zktest

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// Node is a node as the server has it.
type Node struct {
	Data      []byte
	Stat      zk.Stat
	ACL       []zk.ACL
	Container bool          // it is removed when it has become empty
	TTL       time.Duration // it is removed when it is empty and was not written for so long; 0 for never
	Sequence  int32         // the number that the next sequential child gets
}

// Node returns a copy of a node, and whether it exists.
func (s *Server) Node(path string) (Node, bool) {
	n, ok := s.zk.Node(path)
	if !ok {
		return Node{}, false
	}
	return nodeOf(n), true
}

// Children returns the names of a node's children, sorted; nil if there are none or the node does
// not exist.
// The root has the child "zookeeper", as clients see it.
func (s *Server) Children(path string) []string {
	names, _ := s.zk.Children(path)
	return names
}

// SessionInfo is a session as the server has it: ID, Timeout as negotiated, Ephemerals (their paths, sorted), Watches (the number set
// through its present connection), LastHeard, Expires (when it expires if the server hears no more of it), Connected (it has a
// connection, also if that is partitioned).
type SessionInfo = engine.SessionInfo

// Sessions returns the sessions that live, ordered by id.
func (s *Server) Sessions() []SessionInfo { return s.zk.Sessions() }

// Connections returns how many connections are open, with or without a session.
func (s *Server) Connections() int {
	open, _ := s.zk.Connections()
	return open
}

// TotalConnections returns how many connections have been opened so far. A client that
// reconnects counts each time.
func (s *Server) TotalConnections() int {
	_, total := s.zk.Connections()
	return total
}
