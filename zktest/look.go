package zktest

import (
	"time"

	"github.com/go-zookeeper/zk"
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
	out := Node{Data: n.Data, Stat: zk.Stat{
		Czxid: n.Stat.Czxid, Mzxid: n.Stat.Mzxid, Ctime: n.Stat.Ctime, Mtime: n.Stat.Mtime,
		Version: n.Stat.Version, Cversion: n.Stat.Cversion, Aversion: n.Stat.Aversion,
		EphemeralOwner: n.Stat.EphemeralOwner, DataLength: n.Stat.DataLength,
		NumChildren: n.Stat.NumChildren, Pzxid: n.Stat.Pzxid,
	}, Container: n.Container, TTL: n.TTL, Sequence: n.Sequence}
	for _, a := range n.ACL {
		out.ACL = append(out.ACL, zk.ACL{Perms: a.Perms, Scheme: a.ID.Scheme, ID: a.ID.Name})
	}
	return out, true
}

// Children returns the names of a node's children, sorted; nil if there are none or the node does
// not exist.
// The root has the child "zookeeper", as clients see it.
func (s *Server) Children(path string) []string {
	names, _ := s.zk.Children(path)
	return names
}

// Session is a session as the server has it.
type Session struct {
	ID         int64
	Timeout    time.Duration // as negotiated
	Ephemerals []string      // paths, sorted
	Watches    int           // set through its present connection
	LastHeard  time.Time
	Expires    time.Time // when it expires unless the server hears of it
	Connected  bool      // it has a connection, whether or not anything gets through
}

// Sessions returns the sessions that live, ordered by id.
func (s *Server) Sessions() []Session {
	var out []Session
	for _, x := range s.zk.Sessions() {
		out = append(out, Session(x))
	}
	return out
}

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
