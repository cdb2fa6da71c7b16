package engine

import (
	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// commit is the second stage: it applies what was prepared, and tells who watches.
func (s *Server) commit(r *request) {
	t := Txn{Zxid: r.zxid, Time: s.now(), Session: r.session, Op: r.call.Op, Code: r.code}
	for i := range r.txn {
		st := &r.txn[i]
		if st.Op == wire.OpError {
			if t.Code == wire.CodeOK {
				t.Code = st.Code
			}
			continue
		}
		before := len(t.Changes)
		var code wire.Code
		t.Changes, code = s.tree.Apply(st, r.zxid, r.when.UnixMilli(), t.Changes)
		if code != wire.CodeOK && r.code == wire.CodeOK {
			r.code = code
		}
		for i := range t.Changes[before:] {
			s.announce(&t.Changes[before+i], r.zxid)
		}
	}
	if r.zxid > s.tree.Zxid {
		s.tree.Zxid = r.zxid
	}
	s.out.Commit(r.zxid)
	s.armReaper()
	t.First = s.order.first(r.zxid)
	if s.cfg.OnCommit != nil {
		s.cfg.OnCommit(t)
	}
}

// announce fires the watches that a change concerns.
func (s *Server) announce(c *tree.Change, zxid int64) {
	switch parent, _ := tree.SplitPath(c.Path); c.Op {
	case wire.OpCreate:
		s.watches.Created(c.Path, tree.ShowParent(parent), c.ACL, c.ParentACL, zxid)
	case wire.OpDelete:
		s.watches.Deleted(c.Path, tree.ShowParent(parent), c.ACL, c.ParentACL, zxid)
	case wire.OpSetData:
		s.watches.Changed(c.Path, c.ACL, zxid)
	}
}
