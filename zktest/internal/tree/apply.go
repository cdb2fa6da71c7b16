package tree

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// Change is one node that a transaction touched.
type Change struct {
	Op    wire.Op // create, delete, setData or setACL, whatever operation caused it
	Path  string
	Owner int64 // ephemeral owner of a created or deleted node
	Czxid int64

	ACL, ParentACL []wire.ACL // who may hear of it; the parent's for a create and a delete
}

// Apply carries out a step of a transaction, and appends what it changes. A step can fail although it was prepared: the counters of the
// real server do not go back when a transaction in front of it is dropped.
func (t *Tree) Apply(st *Step, zxid, ms int64, changes []Change) ([]Change, wire.Code) {
	switch st.Op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return t.applyCreate(st, zxid, ms, changes)
	case wire.OpDelete, wire.OpDeleteContainer:
		return t.applyDelete(st.Path, zxid, changes)
	case wire.OpSetData, wire.OpSetACL:
		return t.applySet(st, zxid, ms, changes)
	case wire.OpClose:
		for _, p := range st.paths {
			changes, _ = t.applyDelete(p, zxid, changes) // a node that is gone already is no obstacle
		}
		delete(t.ephemerals, st.owner)
	}
	return changes, wire.CodeOK
}

func (t *Tree) applySet(st *Step, zxid, ms int64, changes []Change) ([]Change, wire.Code) {
	n := t.nodes[st.Path]
	if n == nil {
		return changes, wire.CodeNoNode
	}
	if st.Op == wire.OpSetACL {
		n.ACL, n.stat.aversion = st.acl, st.version
	} else {
		t.DataSize += int64(len(st.data) - len(n.Data))
		n.Data = st.data
		n.stat.mtime, n.stat.mzxid, n.stat.version = ms, zxid, st.version
	}
	st.Stat = n.Visible()
	return append(changes, Change{Op: st.Op, Path: st.Path, Owner: n.stat.owner, Czxid: n.stat.czxid, ACL: n.ACL}), wire.CodeOK
}

func (t *Tree) applyCreate(st *Step, zxid, ms int64, changes []Change) ([]Change, wire.Code) {
	if code := t.create(st.Path, st.data, st.acl, st.owner, st.cversion, zxid, ms); code != wire.CodeOK {
		return changes, code
	}
	st.Stat = t.nodes[st.Path].Visible()
	parent, _ := SplitPath(st.Path)
	return append(changes, Change{
		Op: wire.OpCreate, Path: st.Path, Owner: st.owner, Czxid: zxid, ACL: st.acl, ParentACL: t.nodes[parent].ACL,
	}), wire.CodeOK
}

func (t *Tree) applyDelete(path string, zxid int64, changes []Change) ([]Change, wire.Code) {
	n := t.nodes[path]
	if code := t.remove(path, zxid); code != wire.CodeOK {
		return changes, code
	}
	parent, _ := SplitPath(path)
	return append(changes, Change{
		Op: wire.OpDelete, Path: path, Owner: n.stat.owner, Czxid: n.stat.czxid, ACL: n.ACL, ParentACL: t.nodes[parent].ACL,
	}), wire.CodeOK
}
