package zkserver

import (
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// persisted is the part of a node's status that transactions change. Its cversion
// counts creates only; the visible one is derived in node.stat.
type persisted struct {
	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	version, cversion, aversion int32
	owner                       int64
}

type node struct {
	data     []byte
	acl      []wire.ACL
	stat     persisted
	children *nameSet // nil while there never was a child
}

// visible returns the node's status as clients see it. The child version counts
// creates and deletes there: every create that is not matched by a present child was
// followed by a delete. A container, and a node with a time to live, look like a persistent node.
func (n *node) visible() wire.Stat {
	kids := int32(n.children.len())
	s := n.stat
	if !isEphemeral(s.owner) {
		s.owner = 0
	}
	return wire.Stat{
		Czxid: s.czxid, Mzxid: s.mzxid, Pzxid: s.pzxid, Ctime: s.ctime, Mtime: s.mtime,
		Version: s.version, Cversion: s.cversion*2 - kids, Aversion: s.aversion,
		EphemeralOwner: s.owner, DataLength: int32(len(n.data)), NumChildren: kids,
	}
}

// tree is the data tree: committed state only.
type tree struct {
	nodes      map[string]*node // the root is "/" and "", as a top-level node's parent is ""
	ephemerals map[int64]*nameSet
	containers *nameSet
	ttls       *nameSet // nodes with a time to live
	dataSize   int64    // bytes of paths and data
	zxid       int64    // of the last transaction applied
}

// copy returns a tree with the same nodes, as a member gets it that has nothing.
func (t *tree) copy() *tree {
	c := *t
	c.nodes = make(map[string]*node, len(t.nodes))
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

func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64]*nameSet{}, containers: newNameSet(16), ttls: newNameSet(16)}
	fresh := func(path string, acl []wire.ACL, children ...string) *node {
		n := &node{data: []byte{}, acl: acl}
		for _, c := range children {
			n.addChild(c)
		}
		t.nodes[path] = n
		t.dataSize += int64(len(path))
		return n
	}
	t.nodes[""] = fresh("/", wire.OpenACL(), "zookeeper")
	fresh("/zookeeper", wire.OpenACL(), "quota", "config")
	fresh("/zookeeper/quota", wire.OpenACL())
	cfg := fresh("/zookeeper/config", []wire.ACL{{Perms: wire.PermRead, ID: wire.ID{Scheme: "world", Name: "anyone"}}})
	cfg.stat.aversion = -1
	return t
}

func (n *node) addChild(name string) {
	if n.children == nil {
		n.children = newNameSet(8)
	}
	n.children.add(name)
}

// splitPath returns the parent ("" for a top-level node) and the last element.
func splitPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

// showParent names a parent the way watches know it.
func showParent(parent string) string {
	if parent == "" {
		return "/"
	}
	return parent
}

// isEphemeral tells whether owner is a session: neither nobody nor the mark of a container or a time to live.
func isEphemeral(owner int64) bool {
	return owner != 0 && owner != wire.ContainerOwner && !isTTL(owner)
}

// create adds a node. parentCversion is the counter that preparation assigned to the
// parent; it is only ever raised, so that at the limit of the counter it stands still.
func (t *tree) create(path string, data []byte, acl []wire.ACL, owner int64, parentCversion int32, zxid, ms int64) wire.Code {
	parentName, name := splitPath(path)
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
	t.nodes[path] = &node{data: data, acl: acl, stat: persisted{
		czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: ms, mtime: ms, owner: owner,
	}}
	t.dataSize += int64(len(path) + len(data))
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
func (t *tree) remove(path string, zxid int64) wire.Code {
	parentName, name := splitPath(path)
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
	t.dataSize -= int64(len(path) + len(n.data))
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

func (t *tree) ephemeralCount() int {
	sum := 0
	for _, set := range t.ephemerals {
		sum += set.len()
	}
	return sum
}
