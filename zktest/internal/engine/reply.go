package engine

import (
	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// answer executes a read, or encodes the outcome of a committed write, and returns the
// reply frame. The header carries the zxid of the last transaction applied.
func (s *Server) answer(r *request) []byte {
	body := wire.NewFrame(64)
	xid := r.xid
	if r.call.Op == wire.OpPing {
		xid = wire.XidPing // whatever the client has sent
	}
	body.Header(xid, s.tree.Zxid, wire.CodeOK)
	if r.code == wire.CodeOK {
		r.code = s.encodeResult(r, body)
	}
	if r.code != wire.CodeOK {
		if r.call.Op != wire.OpMultiRead { // there the real server leaves the body in
			body.B = body.B[:4+16]
		}
		if r.call.Op == wire.OpMulti && r.call.Null {
			multiHeader(body, wire.OpError, true, -1)
		}
		tail := wire.Encoder{B: body.B[:4+12]}
		tail.Int32(int32(r.code))
	}
	return body.Frame()
}

// encodeResult appends the body of a successful reply.
func (s *Server) encodeResult(r *request, e *wire.Encoder) wire.Code {
	switch r.call.Op {
	case wire.OpCreate:
		e.Text(r.txn[0].Path)
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		e.Text(r.txn[0].Path)
		e.Stat(r.txn[0].Stat)
	case wire.OpSetData, wire.OpSetACL:
		e.Stat(r.txn[0].Stat)
	case wire.OpMulti:
		encodeMulti(r.txn, e)
	case wire.OpDelete, wire.OpDeleteContainer, wire.OpClose, wire.OpPing, wire.OpCheck:
	default:
		return s.read(r, e)
	}
	return wire.CodeOK
}

func encodeMulti(txn []tree.Step, e *wire.Encoder) {
	for i := range txn {
		op := &txn[i]
		kind := op.Op
		if kind == wire.OpCreateContainer || kind == wire.OpCreateTTL {
			kind = wire.OpCreate2
		}
		multiHeader(e, kind, false, op.Code)
		switch op.Op {
		case wire.OpCreate:
			e.Text(op.Path)
		case wire.OpCreateContainer, wire.OpCreateTTL:
			e.Text(op.Path)
			e.Stat(op.Stat)
		case wire.OpSetData:
			e.Stat(op.Stat)
		case wire.OpError:
			e.Int32(int32(op.Code))
		}
	}
	multiHeader(e, wire.OpError, true, -1)
}

func multiHeader(e *wire.Encoder, op wire.Op, done bool, code wire.Code) {
	e.Int32(int32(op))
	e.Bool(done)
	e.Int32(int32(code))
}

// read executes a request that changes nothing but watches.
func (s *Server) read(r *request, e *wire.Encoder) wire.Code {
	c := &r.call
	if c.Bad {
		return wire.CodeMarshalling
	}
	switch c.Op {
	case wire.OpExists:
		return s.readExists(r, e)
	case wire.OpGetData:
		return s.readData(r, c, e)
	case wire.OpGetChildren, wire.OpGetChildren2:
		return s.readChildren(r, c, e)
	case wire.OpGetACL:
		return s.readACL(r, e)
	case wire.OpSync:
		if c.Null {
			e.Int32(-1)
		} else {
			e.Text(c.Path)
		}
	case wire.OpSetWatches, wire.OpSetWatches2:
		s.watches.Restore(s.tree.Changed, c.Watches, r.conn)
	case wire.OpAddWatch:
		e.Int32(0) // the body of the reply repeats the result
		return s.watches.Add(c.Path, c.Kind, r.conn)
	case wire.OpCheckWatches:
		return s.watches.Check(c.Path, c.Kind, r.conn)
	case wire.OpRemoveWatches:
		return s.watches.Remove(c.Path, c.Kind, r.conn)
	case wire.OpMultiRead:
		return s.readMulti(r, e)
	case wire.OpGetEphemerals:
		e.Texts(s.tree.EphemeralsUnder(r.session, c.Path))
	case wire.OpGetAllChildrenNumber:
		return s.readDescendants(r, e)
	case wire.OpWhoAmI:
		encodeIdentities(r.ids, e)
	default:
		return wire.CodeUnimplemented
	}
	return wire.CodeOK
}

func (s *Server) readExists(r *request, e *wire.Encoder) wire.Code {
	path := r.call.Path
	for i := range len(path) {
		if path[i] == 0 {
			return wire.CodeBadArguments
		}
	}
	if r.call.Watch {
		s.watches.OnData(path, r.conn)
	}
	n := s.tree.Get(path)
	if n == nil {
		return wire.CodeNoNode
	}
	e.Stat(n.Visible())
	return wire.CodeOK
}

// readable finds a node that the client may read.
func (s *Server) readable(r *request, path string, perm int32) (*tree.Node, wire.Code) {
	n := s.tree.Get(path)
	if n == nil {
		return nil, wire.CodeNoNode
	}
	return n, s.allowed(r, n.ACL, perm)
}

func (s *Server) readData(r *request, c *wire.Call, e *wire.Encoder) wire.Code {
	n, code := s.readable(r, c.Path, wire.PermRead)
	if code != wire.CodeOK {
		return code
	}
	if c.Watch {
		s.watches.OnData(c.Path, r.conn)
	}
	e.Buffer(n.Data)
	e.Stat(n.Visible())
	return wire.CodeOK
}

func (s *Server) readChildren(r *request, c *wire.Call, e *wire.Encoder) wire.Code {
	n, code := s.readable(r, c.Path, wire.PermRead)
	if code != wire.CodeOK {
		return code
	}
	if c.Watch {
		s.watches.OnChildren(c.Path, r.conn)
	}
	n.AppendChildren(e)
	if c.Op == wire.OpGetChildren2 {
		e.Stat(n.Visible())
	}
	return wire.CodeOK
}

func (s *Server) readACL(r *request, e *wire.Encoder) wire.Code {
	n, code := s.readable(r, r.call.Path, wire.PermRead|wire.PermAdmin)
	if code != wire.CodeOK {
		return code
	}
	acl := n.ACL
	if s.allowed(r, acl, wire.PermAdmin) != wire.CodeOK {
		acl = access.HideDigests(acl)
	}
	e.ACL(acl)
	e.Stat(n.Visible())
	return wire.CodeOK
}

// maxReply bounds what a multiRead collects: no client takes more, and a request of 1 MB can ask for 50 000 times
// a node's data, for which a real server has no memory.
const maxReply = 64 << 20

// readMulti answers each part on its own; a failing part does not touch the others. What is no read, and
// a part without a path, is an error of the whole, which leaves the answers before it in.
func (s *Server) readMulti(r *request, e *wire.Encoder) wire.Code {
	defer func() { multiHeader(e, wire.OpError, true, -1) }()
	for i := range r.call.Subs {
		c := &r.call.Subs[i]
		part := wire.Encoder{}
		var code wire.Code
		switch {
		case c.Null || !c.Reads():
			return wire.CodeMarshalling
		case c.Op == wire.OpGetData:
			code = s.readData(r, c, &part)
		default:
			code = s.readChildren(r, c, &part)
		}
		if code != wire.CodeOK {
			multiHeader(e, wire.OpError, false, code)
			e.Int32(int32(code))
			continue
		}
		multiHeader(e, c.Op, false, wire.CodeOK)
		e.B = append(e.B, part.B...)
		if len(e.B) > maxReply {
			s.log.Once("multiRead", logs.ID(r.session)).Warn("connection dropped: a multiRead asks for too much", "session", logs.ID(r.session))
			r.fate = FateReplyLost
			return wire.CodeMarshalling
		}
	}
	return wire.CodeOK
}
