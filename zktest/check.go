package zktest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What the Check functions show of data that differs.
const checkedData = 200

// complain fails t and shows what the server looks like.
func (s *Server) complain(t TB, format string, args ...any) {
	t.Helper()
	t.Errorf("zktest: %s\n%s", fmt.Sprintf(format, args...), s.situation())
}

// CheckNode fails t unless the node exists and has the data.
func CheckNode(t TB, s *Server, path string, data []byte) {
	t.Helper()
	if !s.possible(t, path) {
		return
	}
	n, ok := s.zk.Node(path)
	switch {
	case !ok:
		s.complain(t, "no node %s", shown(path))
	case !bytes.Equal(n.Data, data):
		s.complain(t, "node %s has data %s, want %s", shown(path), wanted(n.Data), wanted(data))
	}
}

func wanted(d []byte) string {
	if len(d) == 0 {
		return "none"
	}
	return dataText(d, checkedData)
}

// CheckNoNode fails t if the node exists.
func CheckNoNode(t TB, s *Server, path string) {
	t.Helper()
	if s.possible(t, path) && s.zk.ChildCount(path) >= 0 {
		s.complain(t, "there is a node %s", shown(path))
	}
}

// CheckChildren fails t unless these are the node's children, in any order. "/" has the child "zookeeper".
func CheckChildren(t TB, s *Server, path string, names ...string) {
	t.Helper()
	if !s.possible(t, path) {
		return
	}
	for _, name := range names {
		if strings.Contains(name, "/") {
			s.complain(t, "children of %s: %q is a path; children are named without their parent", shown(path), name)
			return
		}
	}
	have, ok := s.zk.Children(path)
	if !ok {
		s.complain(t, "no node %s", shown(path))
		return
	}
	s.checkSet(t, "children of "+shown(path), have, names)
}

// checkSet compares two sets and names what is missing and what is too many.
func (s *Server) checkSet(t TB, what string, have, want []string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	if slices.Equal(have, want) {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(x string) bool { return slices.Contains(have, x) })
	extra := slices.DeleteFunc(slices.Clone(have), func(x string) bool { return slices.Contains(want, x) })
	s.complain(t, "%s: %s, want %s; missing: %s, too many: %s", what, listed(have), listed(want), listed(missing), listed(extra))
}

// listed shows at most as many names as a message can bear.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	const most = 30
	text := cut(strings.Join(mapped(names[:min(len(names), most)], shown), " "), 3*reportedLine)
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func mapped[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}

// CheckTree fails t unless [Server.Contents] of root are these.
func CheckTree(t TB, s *Server, root string, want map[string]string) {
	t.Helper()
	if !s.possible(t, root) {
		return
	}
	have := s.Contents(root)
	var missing, extra, differ []string
	for _, p := range slices.Sorted(maps.Keys(want)) {
		switch data, ok := have[p]; {
		case !ok:
			missing = append(missing, p)
		case data != want[p]:
			differ = append(differ, fmt.Sprintf("%s has data %s, want %s", p, wanted([]byte(data)), wanted([]byte(want[p]))))
		}
	}
	for _, p := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[p]; !ok {
			extra = append(extra, p)
		}
	}
	if len(missing)+len(extra)+len(differ) > 0 {
		s.complain(t, "nodes of %s: missing: %s, too many: %s, different: %s",
			shown(root), listed(missing), listed(extra), listed(differ))
	}
}

// CheckEphemerals fails t unless the session lives and owns exactly these nodes.
func CheckEphemerals(t TB, s *Server, session int64, paths ...string) {
	t.Helper()
	for _, x := range s.Sessions() {
		if x.ID == session {
			s.checkSet(t, "ephemerals of session "+hex(session), x.Ephemerals, paths)
			return
		}
	}
	s.complain(t, "no session %s; those that live: %s", hex(session), listed(s.sessionIDs()))
}

// CheckSessions fails t unless exactly these sessions live.
func CheckSessions(t TB, s *Server, ids ...int64) {
	t.Helper()
	s.checkSet(t, "sessions", s.sessionIDs(), mapped(ids, hex))
}

// sessionIDs returns the sessions that live, as text in the order of text.
func (s *Server) sessionIDs() []string {
	ids := mapped(s.Sessions(), func(x SessionInfo) string { return hex(x.ID) })
	slices.Sort(ids)
	return ids
}

// CheckWatched fails t unless [Server.WatchesOn] is n.
func CheckWatched(t TB, s *Server, path string, n int) {
	t.Helper()
	if have := s.WatchesOn(path); have != n {
		s.complain(t, "%d watches on %s, want %d\n%s", have, shown(path), n, strings.TrimSuffix(watchText(s.WatchList(), reportedWatches), "\n"))
	}
}
