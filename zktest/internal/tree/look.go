package tree

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Info is a node as the server has it, for whoever looks from inside.
type Info struct {
	Data []byte
	Stat wire.Stat
	ACL  []wire.ACL
	// Container reports that the node is removed when it has become empty.
	Container bool
	// TTL is the node's time to live: it is removed when it has no children and was not written for so long. 0 for none.
	TTL time.Duration
	// Sequence is the number that the next sequential child gets.
	Sequence int32
}

// Describe returns a node's description, which shares data and ACL with it.
func (n *Node) Describe() Info {
	return Info{
		Data: n.Data, Stat: n.Visible(), ACL: n.ACL,
		Container: n.stat.owner == wire.ContainerOwner, TTL: ttlOf(n.stat.owner), Sequence: n.stat.cversion,
	}
}

// Walk visits a node and everything below it, parents first, siblings by name, until visit returns false.
func (t *Tree) Walk(p string, visit func(path string, n Info) bool) bool {
	n := t.nodes[p]
	if n == nil {
		return true
	}
	if !visit(p, n.Describe()) {
		return false
	}
	for _, name := range n.Names() {
		if !t.Walk(path.Join(p, name), visit) {
			return false
		}
	}
	return true
}

// Descendants counts the nodes below a path, at any depth.
func (t *Tree) Descendants(path string) int {
	if path == "/" {
		return len(t.nodes) - 2 // the root counts twice, see size
	}
	n := 0
	for p := range t.nodes {
		if strings.HasPrefix(p, path) && strings.HasPrefix(p[len(path):], "/") {
			n++
		}
	}
	return n
}

// Changed returns in which transactions a node's data and its children were changed last, and whether it exists.
func (t *Tree) Changed(path string) (data, children int64, ok bool) {
	n := t.nodes[path]
	if n == nil {
		return 0, 0, false
	}
	return n.stat.mzxid, n.stat.pzxid, true
}

// Size counts the nodes, the root twice, as the real server does.
func (t *Tree) Size() int { return len(t.nodes) }

// EphemeralsUnder returns the ephemerals of a session whose path begins with prefix, which need not end
// at a slash; all of them if there is nothing, or only the root, in prefix.
func (t *Tree) EphemeralsUnder(session int64, prefix string) []string {
	set := t.ephemerals[session]
	if set.len() == 0 {
		return nil
	}
	all := set.clone().list()
	if s := strings.TrimFunc(prefix, blank); s == "" || s == "/" {
		return all
	}
	return slices.DeleteFunc(all, func(path string) bool { return !strings.HasPrefix(path, prefix) })
}

// blank reports whether the JVM trims a character.
func blank(r rune) bool { return r <= ' ' }
