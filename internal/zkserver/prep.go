package zkserver

// prepare is the first stage: it gives a write its zxid and decides, against the
// outstanding changes, what its transaction will be or why it fails. A failing
// write costs a zxid too.
func (s *Server) prepare(r *request) {
	r.when = s.now()
	if r.fate == FateFailed {
		return // by a rule
	}
	switch r.call.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer, OpSetData, OpSetACL,
		OpMulti, OpCheck, OpConnect, OpClose, OpReconfig, opCreateSession:
		if r.call.Op == OpReconfig && r.call.bad {
			r.code = CodeMarshalling // the one write whose body the real server reads first
			return
		}
		s.zxid++
		r.zxid = s.zxid
	default:
		r.code = s.checkSession(r)
		return
	}
	switch {
	case r.call.Op == OpDeleteContainer && !r.internal:
		r.code = CodeBadArguments // the server's own operation; the real one misreads it when a client sends it
	case r.call.bad:
		r.code = CodeMarshalling
	case r.call.Op == OpMulti && r.call.null:
		// The real server stumbles before it has begun the transaction: the zxid is lost, and the error comes as
		// from a read.
		r.zxid, r.code = 0, CodeMarshalling
	case r.call.Op == OpMulti:
		s.prepareMulti(r)
	default:
		op, code := s.prepareOp(r, &r.call)
		r.code = code
		if code == CodeOK {
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
		if code != CodeOK {
			s.out.rollback(r.zxid, saved)
			if code == CodeMarshalling { // not of this part, but of the whole
				r.txn, r.code = nil, code
				return
			}
			r.txn = make([]txnOp, len(r.call.Subs))
			for j := range r.txn {
				r.txn[j] = txnOp{op: opError}
				if j > i {
					r.txn[j].code = CodeRuntimeInconsistency
				}
			}
			r.txn[i].code = code
			return
		}
		r.txn = append(r.txn, op)
	}
}

func (s *Server) prepareOp(r *request, c *Call) (txnOp, Code) {
	if c.bad {
		return txnOp{}, CodeMarshalling
	}
	switch c.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return s.prepareCreate(r, c)
	case OpDelete:
		return s.prepareDelete(r, c)
	case OpDeleteContainer:
		return s.prepareReap(r, c)
	case OpSetData:
		return s.prepareSetData(r, c)
	case OpSetACL:
		return s.prepareSetACL(r, c)
	case OpCheck:
		return s.prepareCheck(r, c)
	case OpConnect, opCreateSession:
		return txnOp{op: OpConnect}, CodeOK
	case OpReconfig:
		return txnOp{}, CodeReconfigDisabled
	case OpClose:
		return s.prepareClose(r), CodeOK
	}
	return txnOp{}, CodeUnimplemented // a read inside a multi
}

// checkSession refuses a request whose session is unknown or being closed.
func (s *Server) checkSession(r *request) Code {
	if r.internal {
		return CodeOK
	}
	switch sess := s.sessions[r.session]; {
	case sess == nil:
		return CodeUnknownSession
	case sess.closing:
		return CodeSessionExpired
	case !sess.belongsTo(r.origin):
		return CodeSessionMoved
	}
	return CodeOK
}

func (s *Server) allowed(r *request, acl []ACL, perm int32) Code {
	if r.internal {
		return CodeOK
	}
	return checkACL(acl, perm, r.ids)
}

func (s *Server) prepareSetData(r *request, c *Call) (txnOp, Code) {
	rec, code := s.forUpdate(r, c.Path, PermWrite)
	if code != CodeOK {
		return txnOp{}, code
	}
	v, code := nextVersion(rec.stat.version, c.Version)
	if code != CodeOK {
		return txnOp{}, code
	}
	rec = rec.duplicate(r.zxid)
	rec.stat.version, rec.stat.mtime, rec.stat.mzxid = v, r.ms(), r.zxid
	s.out.add(rec)
	return txnOp{op: OpSetData, path: c.Path, data: c.Data, version: v}, CodeOK
}

func (s *Server) prepareSetACL(r *request, c *Call) (txnOp, Code) {
	if code := s.checkSession(r); code != CodeOK {
		return txnOp{}, code
	}
	if !validPath(c.Path) {
		return txnOp{}, CodeBadArguments
	}
	acl, code := fixACL(c.ACL, r.ids)
	if code != CodeOK {
		return txnOp{}, code
	}
	rec, code := s.forUpdate(r, c.Path, PermAdmin)
	if code != CodeOK {
		return txnOp{}, code
	}
	v, code := nextVersion(rec.stat.aversion, c.Version)
	if code != CodeOK {
		return txnOp{}, code
	}
	// The list itself is not put into the outstanding change: a 3.8 server checks
	// requests that are in flight together with a setACL against the old one.
	rec = rec.duplicate(r.zxid)
	rec.stat.aversion = v
	s.out.add(rec)
	return txnOp{op: OpSetACL, path: c.Path, acl: acl, version: v}, CodeOK
}

func (s *Server) prepareCheck(r *request, c *Call) (txnOp, Code) {
	rec, code := s.forUpdate(r, c.Path, PermRead)
	if code != CodeOK {
		return txnOp{}, code
	}
	_, code = nextVersion(rec.stat.version, c.Version)
	return txnOp{op: OpCheck, path: c.Path}, code
}

// forUpdate runs the checks that setData, setACL and check share.
func (s *Server) forUpdate(r *request, path string, perm int32) (*change, Code) {
	if code := s.checkSession(r); code != CodeOK {
		return nil, code
	}
	if !validPath(path) {
		return nil, CodeBadArguments
	}
	rec, code := s.record(path)
	if code != CodeOK {
		return nil, code
	}
	return rec, s.allowed(r, rec.acl, perm)
}

// nextVersion compares a version with the expected one, where -1 expects nothing.
func nextVersion(have, want int32) (int32, Code) {
	if want != -1 && want != have {
		return 0, CodeBadVersion
	}
	return have + 1, CodeOK
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
	op := txnOp{op: OpClose, paths: paths.list()}
	for _, p := range op.paths {
		if parent, code := parentForCreate(p); code == CodeOK {
			if rec, code := s.record(parent); code == CodeOK {
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
