package zktest

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Load makes persistent nodes, data by path, with their parents. A node that exists gets the data.
func (s *Server) Load(nodes map[string]string) {
	if s.tb != nil {
		s.tb.Helper()
	}
	for _, p := range slices.Sorted(maps.Keys(nodes)) {
		if !s.put(p, []byte(nodes[p])) {
			return
		}
	}
}

// put makes one node with its parents, or sets its data.
func (s *Server) put(p string, data []byte) bool {
	if s.tb != nil {
		s.tb.Helper()
	}
	if s.zk.ChildCount(p) >= 0 {
		return s.do("load", wire.Call{Op: wire.OpSetData, Path: p, Data: data, Version: -1})
	}
	if parent := path.Dir(p); strings.HasPrefix(p, "/") && parent != p && s.zk.ChildCount(parent) < 0 {
		if !s.put(parent, nil) {
			return false
		}
	}
	return s.do("load", wire.Call{Op: wire.OpCreate, Path: p, Data: data, ACL: wire.OpenACL()})
}

// Contents returns the data of the nodes at root and below, by path, without "/" if it has no data.
func (s *Server) Contents(root string) map[string]string {
	out := map[string]string{}
	s.zk.Walk(root, func(p string, n tree.Info) bool {
		if !own(p) && (p != "/" || len(n.Data) > 0) {
			out[p] = string(n.Data)
		}
		return true
	})
	return out
}

// own reports whether a node is the server's own.
func own(p string) bool { return p == "/zookeeper" || strings.HasPrefix(p, "/zookeeper/") }

// DeleteAll removes a node, if it exists, and everything below it, each in a transaction of its own.
func (s *Server) DeleteAll(root string) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if err := wrongPath(root); err != nil {
		s.errorf("zktest: DeleteAll: %v", err)
		return
	}
	for again := true; again; {
		again = false
		for _, p := range slices.Backward(s.below(root)) { // a walk shows parents first
			_, code := s.zk.Do(wire.Call{Op: wire.OpDelete, Path: p, Version: -1}, 0)
			switch code {
			case wire.CodeOK:
			case wire.CodeNoNode, wire.CodeNotEmpty: // a client has removed it, or has created another one below it
				again = true
			default:
				s.cannot("delete", p, code)
				return
			}
		}
	}
}

// below returns the paths of a node and of everything below it, except "/" and the server's own.
func (s *Server) below(root string) []string {
	var paths []string
	s.zk.Walk(root, func(p string, _ tree.Info) bool {
		if p != "/" && !own(p) {
			paths = append(paths, p)
		}
		return true
	})
	return paths
}

// SetACL changes the access control list of a node.
func (s *Server) SetACL(path string, acl ...zk.ACL) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.do("set the ACL of", wire.Call{Op: wire.OpSetACL, Path: path, ACL: wireACL(acl), Version: -1})
}
