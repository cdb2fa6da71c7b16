package zktest

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Snapshot returns the nodes at root and below, with ACL, kind and sequence number, for [Server.Restore] of
// any server.
func (s *Server) Snapshot(root string) map[string]Node {
	out := map[string]Node{}
	s.zk.Walk(root, func(p string, n tree.Info) bool {
		if !own(p) {
			n.Data = bytes.Clone(n.Data)
			out[p] = nodeOf(n)
		}
		return true
	})
	return out
}

// Restore brings the nodes at root and below back to a snapshot of that root, each step in a transaction of
// its own. Versions, times and transaction ids go on. Ephemeral nodes are only deleted. A step that cannot be
// done fails the test and ends Restore.
func (s *Server) Restore(root string, snapshot map[string]Node) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if err := wrongPath(root); err != nil {
		s.errorf("zktest: Restore: %v", err)
		return
	}
	now := s.Snapshot(root)
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(now))) { // children first
		if want, ok := snapshot[p]; p != "/" && (!ok || !sameKind(now[p], want)) {
			if !s.do("restore: delete", wire.Call{Op: wire.OpDelete, Path: p, Version: -1}) {
				return
			}
			delete(now, p)
		}
	}
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(snapshot)), func(p string) bool {
		_, there := now[p]
		return own(p) || p != root && !strings.HasPrefix(p, strings.TrimSuffix(root, "/")+"/") || !there && snapshot[p].Stat.EphemeralOwner != 0
	})
	for _, p := range paths {
		if !s.restore(p, snapshot[p], now) {
			return
		}
	}
	for _, p := range paths { // making children has counted on
		s.zk.SetSequence(p, snapshot[p].Sequence)
	}
}

// sameKind reports whether one node can become the other without being created again.
func sameKind(a, b Node) bool {
	return a.Container == b.Container && a.TTL == b.TTL && a.Stat.EphemeralOwner == b.Stat.EphemeralOwner
}

// restore makes one node, or sets what is different of the one that there is.
func (s *Server) restore(p string, n Node, now map[string]Node) bool {
	have, there := now[p]
	if !there {
		c := wire.Call{Op: wire.OpCreate, Path: p, Data: n.Data, ACL: wireACL(n.ACL)}
		switch {
		case n.Container:
			c.Op, c.Flags = wire.OpCreateContainer, wire.FlagContainer
		case n.TTL > 0:
			c.Op, c.Flags, c.TTL = wire.OpCreateTTL, wire.FlagTTL, n.TTL.Milliseconds()
		}
		return s.do("restore: create", c)
	}
	if !bytes.Equal(have.Data, n.Data) && !s.do("restore: set", wire.Call{Op: wire.OpSetData, Path: p, Data: n.Data, Version: -1}) {
		return false
	}
	return slices.Equal(have.ACL, n.ACL) || s.do("restore: set the ACL of", wire.Call{Op: wire.OpSetACL, Path: p, ACL: wireACL(n.ACL), Version: -1})
}

func nodeOf(n tree.Info) Node {
	out := Node{Data: n.Data, Stat: zk.Stat(n.Stat), Container: n.Container, TTL: n.TTL, Sequence: n.Sequence}
	for _, a := range n.ACL {
		out.ACL = append(out.ACL, zk.ACL{Perms: a.Perms, Scheme: a.ID.Scheme, ID: a.ID.Name})
	}
	return out
}

func wireACL(acl []zk.ACL) []wire.ACL {
	var out []wire.ACL
	for _, a := range acl {
		out = append(out, wire.ACL{Perms: a.Perms, ID: wire.ID{Scheme: a.Scheme, Name: a.ID}})
	}
	return out
}
