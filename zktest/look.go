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
	Container bool          // removed when empty
	TTL       time.Duration // removed when empty and not written for so long
	Sequence  int32         // of the next sequential child
}

// Node returns a copy of a node, if it exists.
func (s *Server) Node(path string) (Node, bool) {
	n, ok := s.zk.Node(path)
	if !ok {
		return Node{}, false
	}
	return nodeOf(n), true
}

// Children returns the sorted names of a node's children, of "/" also "zookeeper"; nil without a node.
func (s *Server) Children(path string) []string {
	names, _ := s.zk.Children(path)
	return names
}

// SessionInfo is a session as the server has it: ID, Timeout, Ephemerals, Watches (set through its present
// connection), LastHeard, Expires (if the server hears no more of it), Connected.
type SessionInfo = engine.SessionInfo

// Sessions returns the sessions that live, by id.
func (s *Server) Sessions() []SessionInfo { return s.zk.Sessions() }

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	open, _ := s.zk.Connections()
	return open
}

// TotalConnections returns how many were opened so far.
func (s *Server) TotalConnections() int {
	_, total := s.zk.Connections()
	return total
}
