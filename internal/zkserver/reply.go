package zkserver

// answer executes a read, or encodes the outcome of a committed write, and returns the
// reply frame. The header carries the zxid of the last transaction applied.
func (s *Server) answer(r *request) []byte {
	body := newFrame(64)
	xid := r.xid
	if r.call.Op == OpPing {
		xid = xidPing // whatever the client has sent
	}
	body.int32(xid)
	body.int64(s.tree.zxid)
	body.int32(0)
	if r.code == CodeOK {
		r.code = s.encodeResult(r, body)
	}
	if r.code != CodeOK {
		if r.call.Op != OpMultiRead { // there the real server leaves the body in
			body.b = body.b[:4+16]
		}
		if r.call.Op == OpMulti && r.call.null {
			multiHeader(body, opError, true, -1)
		}
		tail := encoder{b: body.b[:4+12]}
		tail.int32(int32(r.code))
	}
	return body.frame()
}

// encodeResult appends the body of a successful reply.
func (s *Server) encodeResult(r *request, e *encoder) Code {
	switch r.call.Op {
	case OpCreate:
		e.string(r.txn[0].path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		e.string(r.txn[0].path)
		e.stat(r.txn[0].stat)
	case OpSetData, OpSetACL:
		e.stat(r.txn[0].stat)
	case OpMulti:
		encodeMulti(r.txn, e)
	case OpDelete, OpDeleteContainer, OpClose, OpPing, OpCheck:
	default:
		return s.read(r, e)
	}
	return CodeOK
}

func encodeMulti(txn []txnOp, e *encoder) {
	for i := range txn {
		op := &txn[i]
		kind := op.op
		if kind == OpCreateContainer || kind == OpCreateTTL {
			kind = OpCreate2
		}
		multiHeader(e, kind, false, op.code)
		switch op.op {
		case OpCreate:
			e.string(op.path)
		case OpCreateContainer, OpCreateTTL:
			e.string(op.path)
			e.stat(op.stat)
		case OpSetData:
			e.stat(op.stat)
		case opError:
			e.int32(int32(op.code))
		}
	}
	multiHeader(e, opError, true, -1)
}

func multiHeader(e *encoder, op Op, done bool, code Code) {
	e.int32(int32(op))
	e.bool(done)
	e.int32(int32(code))
}

// read executes a request that changes nothing but watches.
func (s *Server) read(r *request, e *encoder) Code {
	c := &r.call
	if c.bad {
		return CodeMarshalling
	}
	switch c.Op {
	case OpExists:
		return s.readExists(r, e)
	case OpGetData:
		return s.readData(r, c, e)
	case OpGetChildren, OpGetChildren2:
		return s.readChildren(r, c, e)
	case OpGetACL:
		return s.readACL(r, e)
	case OpSync:
		if c.null {
			e.int32(-1)
		} else {
			e.string(c.Path)
		}
	case OpSetWatches, OpSetWatches2:
		s.watches.restore(s.tree, c.Watches, r.conn)
	case OpAddWatch:
		return s.addWatch(r, e)
	case OpCheckWatches:
		return s.watches.check(c.Path, c.Kind)
	case OpRemoveWatches:
		return s.watches.remove(c.Path, c.Kind, r.conn)
	case OpMultiRead:
		return s.readMulti(r, e)
	case OpGetEphemerals:
		e.strings(s.ephemeralsUnder(r.session, c.Path))
	case OpGetAllChildrenNumber:
		return s.readDescendants(r, e)
	case OpWhoAmI:
		encodeIdentities(r.ids, e)
	default:
		return CodeUnimplemented
	}
	return CodeOK
}

func (s *Server) readExists(r *request, e *encoder) Code {
	path := r.call.Path
	for i := range len(path) {
		if path[i] == 0 {
			return CodeBadArguments
		}
	}
	if r.call.Watch {
		s.watches.data.add(path, r.conn, oneShot)
	}
	n := s.tree.nodes[path]
	if n == nil {
		return CodeNoNode
	}
	e.stat(n.visible())
	return CodeOK
}

// readable finds a node that the client may read.
func (s *Server) readable(r *request, path string, perm int32) (*node, Code) {
	n := s.tree.nodes[path]
	if n == nil {
		return nil, CodeNoNode
	}
	return n, s.allowed(r, n.acl, perm)
}

func (s *Server) readData(r *request, c *Call, e *encoder) Code {
	n, code := s.readable(r, c.Path, PermRead)
	if code != CodeOK {
		return code
	}
	if c.Watch {
		s.watches.data.add(c.Path, r.conn, oneShot)
	}
	e.buffer(n.data)
	e.stat(n.visible())
	return CodeOK
}

func (s *Server) readChildren(r *request, c *Call, e *encoder) Code {
	n, code := s.readable(r, c.Path, PermRead)
	if code != CodeOK {
		return code
	}
	if c.Watch {
		s.watches.child.add(c.Path, r.conn, oneShot)
	}
	n.children.appendTo(e)
	if c.Op == OpGetChildren2 {
		e.stat(n.visible())
	}
	return CodeOK
}

func (s *Server) readACL(r *request, e *encoder) Code {
	n, code := s.readable(r, r.call.Path, PermRead|PermAdmin)
	if code != CodeOK {
		return code
	}
	acl := n.acl
	if s.allowed(r, acl, PermAdmin) != CodeOK {
		acl = hideDigests(acl)
	}
	e.acl(acl)
	e.stat(n.visible())
	return CodeOK
}

// maxReply bounds what a multiRead collects: no client takes more, and a request of 1 MB can ask for 50 000 times
// a node's data, for which a real server has no memory.
const maxReply = 64 << 20

// readMulti answers each part on its own; a failing part does not touch the others. What is no read, and
// a part without a path, is an error of the whole, which leaves the answers before it in.
func (s *Server) readMulti(r *request, e *encoder) Code {
	defer func() { multiHeader(e, opError, true, -1) }()
	for i := range r.call.Subs {
		c := &r.call.Subs[i]
		part := encoder{}
		var code Code
		switch {
		case c.null || !c.reads():
			return CodeMarshalling
		case c.Op == OpGetData:
			code = s.readData(r, c, &part)
		default:
			code = s.readChildren(r, c, &part)
		}
		if code != CodeOK {
			multiHeader(e, opError, false, code)
			e.int32(int32(code))
			continue
		}
		multiHeader(e, c.Op, false, CodeOK)
		e.b = append(e.b, part.b...)
		if len(e.b) > maxReply {
			s.log.Warn("connection dropped: a multiRead asks for too much", "session", r.session)
			r.fate = FateReplyLost
			return CodeMarshalling
		}
	}
	return CodeOK
}
