package zktest

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Node is a node as the server has it.
type Node struct {
	Data []byte
	Stat zk.Stat
	ACL  []zk.ACL
}

// Node returns a node, and whether it exists.
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
	}}
	for _, a := range n.ACL {
		out.ACL = append(out.ACL, zk.ACL{Perms: a.Perms, Scheme: a.ID.Scheme, ID: a.ID.Name})
	}
	return out, true
}

// Children returns the names of a node's children, sorted; nil if there are none or the node does
// not exist.
func (s *Server) Children(path string) []string {
	names, _ := s.zk.Children(path)
	return names
}

// Session is a session as the server has it.
type Session struct {
	ID         int64
	Timeout    time.Duration // as negotiated
	Ephemerals []string      // paths, sorted
	Watches    int
	LastHeard  time.Time
	Expires    time.Time // when it expires unless the server hears of it
	Connected  bool
}

// Sessions returns the sessions that live, ordered by id.
func (s *Server) Sessions() []Session {
	var out []Session
	for _, x := range s.zk.Sessions() {
		out = append(out, Session(x))
	}
	return out
}

// Watches returns the number of watches that are set on the server. A client that watches a node
// twice has one watch there; data and child watches count apart.
func (s *Server) Watches() int { return s.zk.Watches() }

// WatchesOn returns the number of watches on a path.
func (s *Server) WatchesOn(path string) int { return s.zk.WatchesOn(path) }

// Notifications returns the number of watch events that the server has sent.
func (s *Server) Notifications() int { return s.zk.Notifications() }

// Tree returns the nodes as indented text, without the server's own under /zookeeper: name, data
// if it is short and printable, and the owner of an ephemeral node.
func (s *Server) Tree() string {
	var b strings.Builder
	s.subtree(&b, "/", 0)
	return b.String()
}

func (s *Server) subtree(b *strings.Builder, p string, depth int) {
	n, ok := s.zk.Node(p)
	if !ok {
		return // deleted while we walk
	}
	name := path.Base(p)
	if p == "/" {
		name = ""
	}
	fmt.Fprintf(b, "%s/%s", strings.Repeat("  ", depth), name)
	switch owner := n.Stat.EphemeralOwner; {
	case n.Container:
		b.WriteString(" container")
	case owner != 0:
		b.WriteString(" ephemeral " + hex(owner))
	}
	if len(n.Data) > 0 {
		if d := n.Data[:min(len(n.Data), 60)]; printable(d) {
			fmt.Fprintf(b, " %q", d)
		} else {
			fmt.Fprintf(b, " %d bytes", len(n.Data))
		}
	}
	b.WriteByte('\n')
	for _, c := range s.Children(p) {
		if child := path.Join(p, c); child != "/zookeeper" {
			s.subtree(b, child, depth+1)
		}
	}
}

func printable(d []byte) bool {
	for _, c := range d {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// leftovers describes what a test has left behind; empty for nothing.
func (s *Server) leftovers() string {
	if s.opts.lenient {
		return ""
	}
	var b strings.Builder
	for _, x := range s.Sessions() {
		fmt.Fprintf(&b, "session %s: timeout %v, connected %v, last heard %s\n",
			hex(x.ID), x.Timeout, x.Connected, x.LastHeard.Format("15:04:05.000"))
		for _, p := range x.Ephemerals {
			fmt.Fprintf(&b, "  ephemeral %s\n", p)
		}
	}
	for _, p := range s.zk.WatchedPaths() {
		fmt.Fprintf(&b, "%d watches on %s\n", s.WatchesOn(p), p)
	}
	if b.Len() == 0 {
		return ""
	}
	b.WriteString("tree:\n" + s.Tree() + "last requests:\n" + s.lastRequests(20))
	return b.String()
}

// lastRequests returns the end of the log, without heartbeats.
func (s *Server) lastRequests(n int) string {
	var lines []string
	log := s.Log()
	for i := len(log) - 1; i >= 0 && len(lines) < n; i-- {
		if log[i].Op != Ping {
			lines = append(lines, "  "+log[i].String()+"\n")
		}
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}
