package zktest

import (
	"fmt"
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
	"github.com/go-menagerie/menagerie/zktest/internal/watch"
)

// WatchKind is the kind of a watch: what it sees, and how long it lasts.
type WatchKind = watch.Kind

// The kinds of watches.
const (
	// DataWatch is set by exists and getData, for one change of the node.
	DataWatch = watch.Data
	// ChildWatch is set by getChildren, for one change of the children.
	ChildWatch = watch.Children
	// PersistentWatch is set by addWatch, and stays.
	PersistentWatch = watch.Persistent
	// RecursiveWatch is set by addWatch, stays, and sees everything below its path.
	RecursiveWatch = watch.Recursive
)

// Watch is a watch of one session: Path, Session, Kind.
type Watch = engine.WatchInfo

// WatchList returns the watches on the server, ordered by path, session and kind.
func (s *Server) WatchList() []Watch { return s.zk.WatchList() }

// Watches returns the number of watches on the server. A client that watches a node twice has one watch
// there. Data and child watches count separately, a persistent watch as both.
func (s *Server) Watches() int { return s.zk.Watches() }

// WatchesOn is [Server.Watches] of one path.
func (s *Server) WatchesOn(path string) int { return s.zk.WatchesOn(path) }

// WatchedPaths returns the paths with watches, sorted.
func (s *Server) WatchedPaths() []string { return s.zk.WatchedPaths() }

// Notifications returns how many watch events the server has sent.
func (s *Server) Notifications() int { return s.zk.Notifications() }

// watchText lists the watches; empty if there are none.
func watchText(list []Watch, limit int) string {
	var b strings.Builder
	for _, w := range list[:min(len(list), limit)] {
		fmt.Fprintf(&b, "watch on %s: %v, session %s\n", cut(shown(w.Path), reportedLine), w.Kind, hex(w.Session))
	}
	tell(&b, len(list)-limit, "watches")
	return b.String()
}
