package zkserver

import (
	"path"
	"slices"
)

// Walk visits a node and everything below it, parents first, siblings by name, until visit returns false. All of it is one
// state of the tree. The server is locked meanwhile: visit must not call it, nor change what it is shown.
func (s *Server) Walk(root string, visit func(path string, n NodeInfo) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walk(root, visit)
}

func (s *Server) walk(p string, visit func(string, NodeInfo) bool) bool {
	n := s.tree.nodes[p]
	if n == nil {
		return true
	}
	if !visit(p, n.describe()) {
		return false
	}
	names := n.children.list()
	slices.Sort(names)
	for _, name := range names {
		if !s.walk(path.Join(p, name), visit) {
			return false
		}
	}
	return true
}
