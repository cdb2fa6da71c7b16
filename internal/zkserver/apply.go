package zkserver

import (
	"time"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// Change is one node that a transaction touched.
type Change struct {
	Op    wire.Op // create, delete, setData or setACL, whatever operation caused it
	Path  string
	Owner int64 // ephemeral owner of a created or deleted node
	Czxid int64
}

// Txn is one committed transaction, as [Config.OnCommit] sees it.
type Txn struct {
	Zxid    int64
	Time    time.Time // the instant of the commit
	Session int64     // who asked for it; 0 for the server itself
	Op      wire.Op
	Code    wire.Code // a failed request is a transaction without changes
	Changes []Change
	// First tells that no other member of the ensemble has applied it yet.
	First bool
}

// commit is the second stage: it applies what was prepared.
func (s *Server) commit(r *request) {
	t := Txn{Zxid: r.zxid, Time: s.now(), Session: r.session, Op: r.call.Op, Code: r.code}
	for i := range r.txn {
		op := &r.txn[i]
		if op.op == wire.OpError {
			if t.Code == wire.CodeOK {
				t.Code = op.code
			}
			continue
		}
		if code := s.apply(r, op, &t); code != wire.CodeOK && r.code == wire.CodeOK {
			r.code = code
		}
	}
	if r.zxid > s.tree.zxid {
		s.tree.zxid = r.zxid
	}
	s.out.commit(r.zxid)
	t.First = s.isFirst(r.zxid)
	if s.cfg.OnCommit != nil {
		s.cfg.OnCommit(t)
	}
}

func (s *Server) apply(r *request, op *txnOp, t *Txn) wire.Code {
	switch op.op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return s.applyCreate(r, op, t)
	case wire.OpDelete, wire.OpDeleteContainer:
		return s.applyDelete(op.path, r.zxid, t)
	case wire.OpSetData:
		n := s.tree.nodes[op.path]
		if n == nil {
			return wire.CodeNoNode
		}
		s.tree.dataSize += int64(len(op.data) - len(n.data))
		n.data = op.data
		n.stat.mtime, n.stat.mzxid, n.stat.version = r.ms(), r.zxid, op.version
		op.stat = n.visible()
		t.Changes = append(t.Changes, Change{Op: wire.OpSetData, Path: op.path, Owner: n.stat.owner, Czxid: n.stat.czxid})
		s.watches.changed(op.path, n.acl)
	case wire.OpSetACL:
		n := s.tree.nodes[op.path]
		if n == nil {
			return wire.CodeNoNode
		}
		n.acl, n.stat.aversion = op.acl, op.version
		op.stat = n.visible()
		t.Changes = append(t.Changes, Change{Op: wire.OpSetACL, Path: op.path, Owner: n.stat.owner, Czxid: n.stat.czxid})
	case wire.OpClose:
		for _, p := range op.paths {
			s.applyDelete(p, r.zxid, t) // a node that is gone already is no obstacle
		}
		delete(s.tree.ephemerals, r.session)
	}
	return wire.CodeOK
}

func (s *Server) applyCreate(r *request, op *txnOp, t *Txn) wire.Code {
	code := s.tree.create(op.path, op.data, op.acl, op.owner, op.cversion, r.zxid, r.ms())
	if code != wire.CodeOK {
		return code
	}
	op.stat = s.tree.nodes[op.path].visible()
	t.Changes = append(t.Changes, Change{Op: wire.OpCreate, Path: op.path, Owner: op.owner, Czxid: r.zxid})
	if op.owner == wire.ContainerOwner || isTTL(op.owner) {
		s.armReaper()
	}
	parent, _ := splitPath(op.path)
	s.watches.created(op.path, parent, op.acl, s.tree.nodes[parent].acl)
	return wire.CodeOK
}

func (s *Server) applyDelete(path string, zxid int64, t *Txn) wire.Code {
	n := s.tree.nodes[path]
	if code := s.tree.remove(path, zxid); code != wire.CodeOK {
		return code
	}
	t.Changes = append(t.Changes, Change{Op: wire.OpDelete, Path: path, Owner: n.stat.owner, Czxid: n.stat.czxid})
	parent, _ := splitPath(path)
	s.watches.deleted(path, parent, n.acl, s.tree.nodes[parent].acl)
	return wire.CodeOK
}
