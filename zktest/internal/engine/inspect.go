package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// SessionInfo describes a session.
type SessionInfo struct {
	ID         int64
	Timeout    time.Duration
	Ephemerals []string // sorted
	Watches    int      // set through its present connection
	LastHeard  time.Time
	Expires    time.Time // when it expires unless it is heard of
	Connected  bool
}

// Sessions returns the sessions, ordered by id.
func (s *Server) Sessions() []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]SessionInfo, 0, len(s.sessions))
	for _, sess := range s.sessions {
		info := SessionInfo{
			ID: sess.id, Timeout: sess.timeout, LastHeard: sess.lastHeard,
			Expires: s.clock.at(sess.bucket), Connected: sess.conn != nil,
			Ephemerals: slices.Sorted(slices.Values(s.tree.Owned(sess.id))),
		}
		if sess.conn != nil {
			info.Watches = sess.conn.srv.watches.Of(sess.conn)
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b SessionInfo) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

// Node returns a copy of a node.
func (s *Server) Node(path string) (tree.Info, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.Get(path)
	if n == nil {
		return tree.Info{}, false
	}
	info := n.Describe()
	info.Data, info.ACL = slices.Clone(info.Data), slices.Clone(info.ACL)
	return info, true
}

// Children returns the sorted names of a node's children, and whether the node exists.
func (s *Server) Children(path string) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.Get(path)
	if n == nil {
		return nil, false
	}
	return n.Names(), true
}

// ChildCount returns how many children a node has, or -1 if it does not exist.
func (s *Server) ChildCount(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.Get(path)
	if n == nil {
		return -1
	}
	return n.Count()
}

// Watches returns the number of watches that are set.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches.Count()
}

// WatchesOn returns the number of watches on a path.
func (s *Server) WatchesOn(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches.On(path)
}

// WatchedPaths returns the paths that are watched, sorted.
func (s *Server) WatchedPaths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches.Paths()
}

// WatchInfo is one watch of one session.
type WatchInfo struct {
	Path    string
	Session int64
	Kind    watch.Kind
}

// WatchList returns the watches that are set, by path, session and kind.
func (s *Server) WatchList() []WatchInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []WatchInfo
	s.watches.List(func(path string, who watch.Watcher, kind watch.Kind) bool {
		out = append(out, WatchInfo{Path: path, Session: sessionOf(who), Kind: kind})
		return true
	})
	slices.SortFunc(out, func(a, b WatchInfo) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(out) // a persistent watch is in both tables
}

// sessionOf returns whose a watch is.
func sessionOf(who watch.Watcher) int64 {
	if c, ok := who.(*conn); ok {
		return c.session
	}
	return 0
}

// Notifications returns the number of watch events queued so far.
func (s *Server) Notifications() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.stats.notifications)
}

// Zxid returns the id of the last transaction applied.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.Zxid
}

// SetZxid makes z the id of the last transaction, so that the next one gets z+1. Going
// back breaks promises that clients rely on; that is what it is for.
func (s *Server) SetZxid(z int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zxid = z
	for _, v := range s.order.views() {
		v.tree.Zxid = z
	}
}

// SetSequence sets the number that the next sequential child of a node gets. It
// reports whether the node exists.
func (s *Server) SetSequence(path string, n int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, v := range s.order.views() {
		found = v.tree.SetSequence(path, n) || found
	}
	s.out.SetSequence(path, n)
	return found
}

// SetVersion sets the version of a node's data. It reports whether there is such a node.
func (s *Server) SetVersion(path string, n int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, v := range s.order.views() {
		found = v.tree.SetVersion(path, n) || found
	}
	s.out.SetVersion(path, n)
	return found
}

// Do runs an operation without a client and without access checks, and waits until it is committed.
// It returns the path of the node that a create made. session is the owner of an ephemeral node.
func (s *Server) Do(c wire.Call, session int64) (string, wire.Code) {
	done := make(chan *request, 1)
	if !s.submitCall(c, session, done) {
		return "", wire.CodeSessionExpired
	}
	r := <-done
	if len(r.txn) > 0 {
		return r.txn[0].Path, r.code
	}
	return "", r.code
}

// submitCall submits an operation of Do. It reports false if nobody can commit it. A hook may end the goroutine, as a
// failing assertion does: the lock is free after that, too.
func (s *Server) submitCall(c wire.Call, session int64, done chan<- *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.order.orderer()
	if l == nil || !s.order.inContact() {
		return false
	}
	l.order.submit(&request{call: c, session: session, internal: true, received: s.now(), reply: done})
	return true
}

// Faults returns, in words, what a test has done to the server and its network, and not ended.
func (s *Server) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var faults []string
	switch {
	case s.closed:
		faults = append(faults, "the server is closed")
	case s.stopped:
		faults = append(faults, "the server is stopped")
	case s.frozen:
		faults = append(faults, "the server is frozen")
	}
	faults = append(faults, s.order.apart()...)
	for _, id := range slices.Sorted(maps.Keys(s.links)) {
		whose := fmt.Sprintf("0x%x", id)
		if id == 0 {
			whose = "each new client"
		}
		for _, fault := range s.links[id].faults() {
			faults = append(faults, whose+" "+fault)
		}
	}
	return faults
}

func (l *link) faults() []string {
	var faults []string
	switch {
	case l.blockRequests > 0 && l.blockReplies > 0:
		faults = append(faults, "is partitioned")
	case l.blockRequests > 0:
		faults = append(faults, "is not heard")
	case l.blockReplies > 0:
		faults = append(faults, "gets no replies")
	}
	if l.latency != nil && *l.latency != (latency{}) {
		faults = append(faults, fmt.Sprintf("is delayed by %v and %v", l.latency.request, l.latency.reply))
	}
	if l.exiles > 0 {
		faults = append(faults, "is pinned to another member")
	}
	return faults
}

// Walk visits a node and everything below it, parents first, siblings by name, until visit returns false. All of it is one
// state of the tree. The server is locked meanwhile: visit must not call it, nor change what it is shown.
func (s *Server) Walk(root string, visit func(path string, n tree.Info) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree.Walk(root, visit)
}

// Connections returns how many connections there are, and how many there have been in all.
func (s *Server) Connections() (open, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), int(s.stats.accepted)
}
