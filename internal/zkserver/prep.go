package zkserver

import (
	"github.com/go-menagerie/menagerie/internal/zkserver/access"
	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// prepare is the first stage: it gives a write its zxid and decides, against the
// outstanding changes, what its transaction will be or why it fails. A failing
// write costs a zxid too.
func (s *Server) prepare(r *request) {
	r.when = s.now()
	if r.fate == FateFailed {
		return // by a rule
	}
	switch {
	case !r.call.Op.Writes():
		r.code = s.checkSession(r)
		return
	case r.call.Op == wire.OpReconfig && r.call.Bad:
		r.code = wire.CodeMarshalling // the one write whose body the real server reads first
		return
	}
	s.zxid++
	r.zxid = s.zxid
	switch {
	case r.call.Op == wire.OpDeleteContainer && !r.internal:
		r.code = wire.CodeBadArguments // the server's own operation; the real one misreads it when a client sends it
	case r.call.Bad:
		r.code = wire.CodeMarshalling
	case r.call.Op == wire.OpMulti && r.call.Null:
		// The real server stumbles before it has begun the transaction: the zxid is lost, and the error comes as
		// from a read.
		r.zxid, r.code = 0, wire.CodeMarshalling
	case r.call.Op == wire.OpMulti:
		s.prepareMulti(r)
	default:
		op, code := s.prepareOp(r, &r.call)
		r.code = code
		if code == wire.CodeOK {
			r.txn = []txnOp{op}
		}
	}
}

// prepareMulti prepares the parts under one zxid. After the first failure the parts
// before it answer "ok" although they are not applied, the rest "runtime inconsistency". A part that cannot be
// understood fails the whole, unless a part before it has.
func (s *Server) prepareMulti(r *request) {
	saved := s.out.pending(r.call.Subs)
	for i := range r.call.Subs {
		op, code := s.prepareOp(r, &r.call.Subs[i])
		if code != wire.CodeOK {
			s.out.rollback(r.zxid, saved)
			if code == wire.CodeMarshalling { // not of this part, but of the whole
				r.txn, r.code = nil, code
				return
			}
			r.txn = make([]txnOp, len(r.call.Subs))
			for j := range r.txn {
				r.txn[j] = txnOp{op: wire.OpError}
				if j > i {
					r.txn[j].code = wire.CodeRuntimeInconsistency
				}
			}
			r.txn[i].code = code
			return
		}
		r.txn = append(r.txn, op)
	}
}

func (s *Server) prepareOp(r *request, c *wire.Call) (txnOp, wire.Code) {
	if c.Bad {
		return txnOp{}, wire.CodeMarshalling
	}
	switch c.Op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return s.prepareCreate(r, c)
	case wire.OpDelete:
		return s.prepareDelete(r, c)
	case wire.OpDeleteContainer:
		return s.prepareReap(r, c)
	case wire.OpSetData:
		return s.prepareSetData(r, c)
	case wire.OpSetACL:
		return s.prepareSetACL(r, c)
	case wire.OpCheck:
		return s.prepareCheck(r, c)
	case wire.OpConnect, wire.OpCreateSession:
		return txnOp{op: wire.OpConnect}, wire.CodeOK
	case wire.OpReconfig:
		return txnOp{}, wire.CodeReconfigDisabled
	case wire.OpClose:
		return s.prepareClose(r), wire.CodeOK
	}
	return txnOp{}, wire.CodeUnimplemented // a read inside a multi
}

// checkSession refuses a request whose session is unknown or being closed.
func (s *Server) checkSession(r *request) wire.Code {
	if r.internal {
		return wire.CodeOK
	}
	switch sess := s.sessions[r.session]; {
	case sess == nil:
		return wire.CodeUnknownSession
	case sess.closing:
		return wire.CodeSessionExpired
	case !sess.belongsTo(r.origin):
		return wire.CodeSessionMoved
	}
	return wire.CodeOK
}

func (s *Server) allowed(r *request, acl []wire.ACL, perm int32) wire.Code {
	if r.internal {
		return wire.CodeOK
	}
	return access.Check(acl, perm, r.ids)
}

func (s *Server) prepareSetData(r *request, c *wire.Call) (txnOp, wire.Code) {
	rec, code := s.forUpdate(r, c.Path, wire.PermWrite)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	v, code := nextVersion(rec.stat.version, c.Version)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	rec = rec.duplicate(r.zxid)
	rec.stat.version, rec.stat.mtime, rec.stat.mzxid = v, r.ms(), r.zxid
	s.out.add(rec)
	return txnOp{op: wire.OpSetData, path: c.Path, data: c.Data, version: v}, wire.CodeOK
}

func (s *Server) prepareSetACL(r *request, c *wire.Call) (txnOp, wire.Code) {
	if code := s.checkSession(r); code != wire.CodeOK {
		return txnOp{}, code
	}
	if !validPath(c.Path) {
		return txnOp{}, wire.CodeBadArguments
	}
	acl, code := access.Resolve(c.ACL, r.ids)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	rec, code := s.forUpdate(r, c.Path, wire.PermAdmin)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	v, code := nextVersion(rec.stat.aversion, c.Version)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	// The list itself is not put into the outstanding change: a 3.8 server checks
	// requests that are in flight together with a setACL against the old one.
	rec = rec.duplicate(r.zxid)
	rec.stat.aversion = v
	s.out.add(rec)
	return txnOp{op: wire.OpSetACL, path: c.Path, acl: acl, version: v}, wire.CodeOK
}

func (s *Server) prepareCheck(r *request, c *wire.Call) (txnOp, wire.Code) {
	rec, code := s.forUpdate(r, c.Path, wire.PermRead)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	_, code = nextVersion(rec.stat.version, c.Version)
	return txnOp{op: wire.OpCheck, path: c.Path}, code
}

// forUpdate runs the checks that setData, setACL and check share.
func (s *Server) forUpdate(r *request, path string, perm int32) (*change, wire.Code) {
	if code := s.checkSession(r); code != wire.CodeOK {
		return nil, code
	}
	if !validPath(path) {
		return nil, wire.CodeBadArguments
	}
	rec, code := s.record(path)
	if code != wire.CodeOK {
		return nil, code
	}
	return rec, s.allowed(r, rec.acl, perm)
}

// nextVersion compares a version with the expected one, where -1 expects nothing.
func nextVersion(have, want int32) (int32, wire.Code) {
	if want != -1 && want != have {
		return 0, wire.CodeBadVersion
	}
	return have + 1, wire.CodeOK
}

// prepareClose lists the ephemerals that go with the session, as of now: including those
// whose create is still outstanding, without those whose delete is.
func (s *Server) prepareClose(r *request) txnOp {
	paths := newNameSet(16)
	if set := s.tree.ephemerals[r.session]; set != nil {
		paths = set.clone()
	}
	for _, c := range s.out.bySession[r.session] {
		if c.stat == nil {
			paths.remove(c.path)
		} else {
			paths.add(c.path)
		}
	}
	op := txnOp{op: wire.OpClose, paths: paths.list()}
	for _, p := range op.paths {
		if parent, code := parentForCreate(p); code == wire.CodeOK {
			if rec, code := s.record(parent); code == wire.CodeOK {
				rec = rec.duplicate(r.zxid)
				rec.stat.pzxid = r.zxid
				s.out.add(rec)
			}
		}
		s.out.add(&change{zxid: r.zxid, path: p, was: r.session})
	}
	if sess := s.sessions[r.session]; sess != nil {
		sess.closing = true
	}
	return op
}
