package zktest

import (
	"bytes"
	"slices"
	"testing"
)

// CheckNode fails t unless the node exists and has the data.
func (s *Server) CheckNode(t testing.TB, path string, data []byte) {
	t.Helper()
	n, ok := s.zk.Node(path)
	switch {
	case !ok:
		t.Errorf("zktest: no node %s in\n%s", path, s.Tree())
	case !bytes.Equal(n.Data, data):
		t.Errorf("zktest: node %s has data %q, want %q", path, n.Data, data)
	}
}

// CheckNoNode fails t if the node exists.
func (s *Server) CheckNoNode(t testing.TB, path string) {
	t.Helper()
	if _, ok := s.zk.Node(path); ok {
		t.Errorf("zktest: unexpected node %s in\n%s", path, s.Tree())
	}
}

// CheckChildren fails t unless the node exists and has exactly these children, in any order.
func (s *Server) CheckChildren(t testing.TB, path string, names ...string) {
	t.Helper()
	have, ok := s.zk.Children(path)
	want := slices.Sorted(slices.Values(names))
	switch {
	case !ok:
		t.Errorf("zktest: no node %s in\n%s", path, s.Tree())
	case !slices.Equal(have, want):
		t.Errorf("zktest: children of %s are %q, want %q", path, have, want)
	}
}
