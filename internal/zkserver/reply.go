package zkserver

// answer executes a read, or encodes the outcome of a committed write, and returns the
// reply frame. The header carries the zxid of the last transaction applied.
func (s *Server) answer(r *request) []byte {
	body := NewFrame(64)
	xid := r.xid
	if r.call.Op == OpPing {
		xid = xidPing // whatever the client has sent
	}
	body.Header(xid, s.tree.zxid, CodeOK)
	if r.code == CodeOK {
		r.code = s.encodeResult(r, body)
	}
	if r.code != CodeOK {
		if r.call.Op != OpMultiRead { // there the real server leaves the body in
			body.B = body.B[:4+16]
		}
		if r.call.Op == OpMulti && r.call.null {
			multiHeader(body, opError, true, -1)
		}
		tail := Encoder{B: body.B[:4+12]}
		tail.Int32(int32(r.code))
	}
	return body.Frame()
}

// encodeResult appends the body of a successful reply.
func (s *Server) encodeResult(r *request, e *Encoder) Code {
	switch r.call.Op {
	case OpCreate:
		e.Text(r.txn[0].path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		e.Text(r.txn[0].path)
		e.Stat(r.txn[0].stat)
	case OpSetData, OpSetACL:
		e.Stat(r.txn[0].stat)
	case OpMulti:
		encodeMulti(r.txn, e)
	case OpDelete, OpDeleteContainer, OpClose, OpPing, OpCheck:
	default:
		return s.read(r, e)
	}
	return CodeOK
}

func encodeMulti(txn []txnOp, e *Encoder) {
	for i := range txn {
		op := &txn[i]
		kind := op.op
		if kind == OpCreateContainer || kind == OpCreateTTL {
			kind = OpCreate2
		}
		multiHeader(e, kind, false, op.code)
		switch op.op {
		case OpCreate:
			e.Text(op.path)
		case OpCreateContainer, OpCreateTTL:
			e.Text(op.path)
			e.Stat(op.stat)
		case OpSetData:
			e.Stat(op.stat)
		case opError:
			e.Int32(int32(op.code))
		}
	}
	multiHeader(e, opError, true, -1)
}

func multiHeader(e *Encoder, op Op, done bool, code Code) {
	e.Int32(int32(op))
	e.Bool(done)
	e.Int32(int32(code))
}

// read executes a request that changes nothing but watches.
func (s *Server) read(r *request, e *Encoder) Code {
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
			e.Int32(-1)
		} else {
			e.Text(c.Path)
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
		e.Texts(s.ephemeralsUnder(r.session, c.Path))
	case OpGetAllChildrenNumber:
		return s.readDescendants(r, e)
	case OpWhoAmI:
		encodeIdentities(r.ids, e)
	default:
		return CodeUnimplemented
	}
	return CodeOK
}

func (s *Server) readExists(r *request, e *Encoder) Code {
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
	e.Stat(n.visible())
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

func (s *Server) readData(r *request, c *Call, e *Encoder) Code {
	n, code := s.readable(r, c.Path, PermRead)
	if code != CodeOK {
		return code
	}
	if c.Watch {
		s.watches.data.add(c.Path, r.conn, oneShot)
	}
	e.Buffer(n.data)
	e.Stat(n.visible())
	return CodeOK
}

func (s *Server) readChildren(r *request, c *Call, e *Encoder) Code {
	n, code := s.readable(r, c.Path, PermRead)
	if code != CodeOK {
		return code
	}
	if c.Watch {
		s.watches.child.add(c.Path, r.conn, oneShot)
	}
	n.children.appendTo(e)
	if c.Op == OpGetChildren2 {
		e.Stat(n.visible())
	}
	return CodeOK
}

func (s *Server) readACL(r *request, e *Encoder) Code {
	n, code := s.readable(r, r.call.Path, PermRead|PermAdmin)
	if code != CodeOK {
		return code
	}
	acl := n.acl
	if s.allowed(r, acl, PermAdmin) != CodeOK {
		acl = hideDigests(acl)
	}
	e.ACL(acl)
	e.Stat(n.visible())
	return CodeOK
}

// maxReply bounds what a multiRead collects: no client takes more, and a request of 1 MB can ask for 50 000 times
// a node's data, for which a real server has no memory.
const maxReply = 64 << 20

// readMulti answers each part on its own; a failing part does not touch the others. What is no read, and
// a part without a path, is an error of the whole, which leaves the answers before it in.
func (s *Server) readMulti(r *request, e *Encoder) Code {
	defer func() { multiHeader(e, opError, true, -1) }()
	for i := range r.call.Subs {
		c := &r.call.Subs[i]
		part := Encoder{}
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
			e.Int32(int32(code))
			continue
		}
		multiHeader(e, c.Op, false, CodeOK)
		e.B = append(e.B, part.B...)
		if len(e.B) > maxReply {
			s.log.Warn("connection dropped: a multiRead asks for too much", "session", r.session)
			r.fate = FateReplyLost
			return CodeMarshalling
		}
	}
	return CodeOK
}
