package tree

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// persisted is the part of a node's status that transactions change. Its cversion
// counts creates only; [Node.Visible] derives the visible one.
type persisted struct {
	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	version, cversion, aversion int32
	owner                       int64
}

type Node struct {
	Data     []byte
	ACL      []wire.ACL
	stat     persisted
	children *nameSet // nil while there never was a child
}

// AppendChildren appends the names of the children to a reply.
func (n *Node) AppendChildren(e *wire.Encoder) { n.children.appendTo(e) }

// Names returns the names of the children, sorted; nil if there are none.
func (n *Node) Names() []string { return slices.Sorted(slices.Values(n.children.list())) }

// Count returns the number of children.
func (n *Node) Count() int { return n.children.len() }

// Visible returns the node's status as clients see it. The child version counts
// creates and deletes there: every create that is not matched by a present child was
// followed by a delete. A container, and a node with a time to live, look like a persistent node.
func (n *Node) Visible() wire.Stat {
	kids := int32(n.children.len())
	s := n.stat
	if !isEphemeral(s.owner) {
		s.owner = 0
	}
	return wire.Stat{
		Czxid: s.czxid, Mzxid: s.mzxid, Pzxid: s.pzxid, Ctime: s.ctime, Mtime: s.mtime,
		Version: s.version, Cversion: s.cversion*2 - kids, Aversion: s.aversion,
		EphemeralOwner: s.owner, DataLength: int32(len(n.Data)), NumChildren: kids,
	}
}

// Tree is the data tree: committed state only.
type Tree struct {
	nodes      map[string]*Node // the root is "/" and "", as a top-level node's parent is ""
	ephemerals map[int64]*nameSet
	containers *nameSet
	ttls       *nameSet // nodes with a time to live
	DataSize   int64    // bytes of paths and data
	Zxid       int64    // of the last transaction applied
}

// Copy returns a tree with the same nodes, as a member gets it that has nothing.
func (t *Tree) Copy() *Tree {
	c := *t
	c.nodes = make(map[string]*Node, len(t.nodes))
	for path, n := range t.nodes {
		d := *n // data and ACLs are never changed in place
		d.children = n.children.copy()
		c.nodes[path] = &d
	}
	c.nodes[""] = c.nodes["/"]
	c.containers, c.ttls = t.containers.copy(), t.ttls.copy()
	c.ephemerals = make(map[int64]*nameSet, len(t.ephemerals))
	for id, set := range t.ephemerals {
		c.ephemerals[id] = set.copy()
	}
	return &c
}

// The nodes that every server has, and that cannot be deleted.
var specialPaths = map[string]bool{"/": true, "/zookeeper": true, "/zookeeper/quota": true, "/zookeeper/config": true}

func New() *Tree {
	t := &Tree{nodes: map[string]*Node{}, ephemerals: map[int64]*nameSet{}, containers: newNameSet(16), ttls: newNameSet(16)}
	fresh := func(path string, acl []wire.ACL, children ...string) *Node {
		n := &Node{Data: []byte{}, ACL: acl}
		for _, c := range children {
			n.addChild(c)
		}
		t.nodes[path] = n
		t.DataSize += int64(len(path))
		return n
	}
	t.nodes[""] = fresh("/", wire.OpenACL(), "zookeeper")
	fresh("/zookeeper", wire.OpenACL(), "quota", "config")
	fresh("/zookeeper/quota", wire.OpenACL())
	cfg := fresh("/zookeeper/config", []wire.ACL{{Perms: wire.PermRead, ID: wire.ID{Scheme: "world", Name: "anyone"}}})
	cfg.stat.aversion = -1
	return t
}

func (n *Node) addChild(name string) {
	if n.children == nil {
		n.children = newNameSet(8)
	}
	n.children.add(name)
}

// SplitPath returns the parent ("" for a top-level node) and the last element.
func SplitPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

// ShowParent names a parent the way watches know it.
func ShowParent(parent string) string {
	if parent == "" {
		return "/"
	}
	return parent
}

// isEphemeral reports whether owner is a session: neither nobody nor the mark of a container or a time to live.
func isEphemeral(owner int64) bool {
	return owner != 0 && owner != wire.ContainerOwner && !isTTL(owner)
}

// create adds a node. parentCversion is the counter that preparation assigned to the
// parent; it is only ever raised, so that at the limit of the counter it stands still.
func (t *Tree) create(path string, data []byte, acl []wire.ACL, owner int64, parentCversion int32, zxid, ms int64) wire.Code {
	parentName, name := SplitPath(path)
	parent := t.nodes[parentName]
	if parent == nil {
		return wire.CodeNoNode
	}
	if parent.children.has(name) {
		return wire.CodeNodeExists
	}
	if parentCversion > parent.stat.cversion {
		parent.stat.cversion = parentCversion
		parent.stat.pzxid = zxid
	}
	parent.addChild(name)
	t.nodes[path] = &Node{Data: data, ACL: acl, stat: persisted{
		czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: ms, mtime: ms, owner: owner,
	}}
	t.DataSize += int64(len(path) + len(data))
	switch {
	case owner == wire.ContainerOwner:
		t.containers.add(path)
	case isTTL(owner):
		t.ttls.add(path)
	case owner != 0:
		set := t.ephemerals[owner]
		if set == nil {
			set = newNameSet(16)
			t.ephemerals[owner] = set
		}
		set.add(path)
	}
	return wire.CodeOK
}

// remove deletes a node. The parent's pzxid never goes back.
func (t *Tree) remove(path string, zxid int64) wire.Code {
	parentName, name := SplitPath(path)
	parent := t.nodes[parentName]
	n := t.nodes[path]
	if parent == nil || n == nil {
		return wire.CodeNoNode
	}
	parent.children.remove(name)
	if zxid > parent.stat.pzxid {
		parent.stat.pzxid = zxid
	}
	delete(t.nodes, path)
	t.DataSize -= int64(len(path) + len(n.Data))
	switch {
	case n.stat.owner == wire.ContainerOwner:
		t.containers.remove(path)
	case isTTL(n.stat.owner):
		t.ttls.remove(path)
	case n.stat.owner != 0:
		if set := t.ephemerals[n.stat.owner]; set != nil {
			set.remove(path) // an empty set stays until the session ends, and so does the size of its table
		}
	}
	return wire.CodeOK
}

// Get returns a node, nil if there is none.
func (t *Tree) Get(path string) *Node { return t.nodes[path] }

// SetVersion sets the version of a node's data. It reports whether there is such a node.
func (t *Tree) SetVersion(path string, v int32) bool {
	nd := t.nodes[path]
	if nd != nil {
		nd.stat.version = v
	}
	return nd != nil
}

// SetSequence sets the number that the next sequential child of a node gets. It reports whether there is such a node.
func (t *Tree) SetSequence(path string, n int32) bool {
	nd := t.nodes[path]
	if nd != nil {
		nd.stat.cversion = n
	}
	return nd != nil
}

// Owners returns the sessions that have, or have had, ephemerals, in order.
func (t *Tree) Owners() []int64 { return slices.Sorted(maps.Keys(t.ephemerals)) }

// Owned returns the ephemerals of a session in the order of the real server.
func (t *Tree) Owned(session int64) []string { return t.ephemerals[session].list() }

// EphemeralCount counts the ephemerals of all sessions.
func (t *Tree) EphemeralCount() int {
	sum := 0
	for _, set := range t.ephemerals {
		sum += set.len()
	}
	return sum
}
