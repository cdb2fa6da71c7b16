package zkserver

import "slices"

// Call is one decoded operation: what a request, or one part of a multi, asks for.
// Only the fields that the operation has are set.
type Call struct {
	Op      Op
	Path    string // for setAuth the scheme
	Data    []byte // for setAuth the credential
	ACL     []ACL
	Flags   int32
	TTL     int64
	Version int32
	Watch   bool
	Subs    []Call      // the parts of a multi
	Watches *watchLists // of setWatches

	connect *connectRequest // of a connect

	// bad marks a body that could not be decoded: the request is still prepared,
	// and costs a zxid if it is a write, because the real server reads the body that late.
	bad bool
}

// watchLists is the body of setWatches.
type watchLists struct {
	relative           int64
	data, exist, child []string
}

// Paths returns the paths that the call names, in order; for a multi those of its parts.
func (c *Call) Paths() []string {
	switch {
	case c.Op == OpMulti || c.Op == OpMultiRead:
		out := make([]string, 0, len(c.Subs))
		for i := range c.Subs {
			out = append(out, c.Subs[i].Path)
		}
		return out
	case c.Watches != nil:
		return slices.Concat(c.Watches.data, c.Watches.exist, c.Watches.child)
	case c.Path == "" || c.Op == OpAuth:
		return nil
	}
	return []string{c.Path}
}

// decodeCall decodes a request body. It reports a malformed body in Call.bad.
func decodeCall(op Op, body []byte) Call {
	d := &decoder{b: body}
	c := Call{Op: op}
	switch op {
	case OpMulti, OpMultiRead:
		c.decodeSubs(d)
	case OpSetWatches:
		c.Watches = &watchLists{relative: d.int64(), data: d.strings(), exist: d.strings(), child: d.strings()}
	default:
		c.decodeBody(d)
	}
	if d.err != nil {
		return Call{Op: op, bad: true}
	}
	return c
}

func (c *Call) decodeBody(d *decoder) {
	switch c.Op {
	case OpCreate, OpCreate2, OpCreateContainer:
		c.Path, c.Data, c.ACL, c.Flags = d.string(), d.buffer(), d.acl(), d.int32()
	case OpCreateTTL:
		c.Path, c.Data, c.ACL, c.Flags, c.TTL = d.string(), d.buffer(), d.acl(), d.int32(), d.int64()
	case OpDelete, OpCheck:
		c.Path, c.Version = d.string(), d.int32()
	case OpSetData:
		c.Path, c.Data, c.Version = d.string(), d.buffer(), d.int32()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		c.Path, c.Watch = d.string(), d.bool()
	case OpGetACL, OpSync, OpDeleteContainer:
		c.Path = d.string()
	case OpAuth:
		d.int32() // type, unused
		c.Path, c.Data = d.string(), d.buffer()
	case OpSetACL:
		c.Path, c.ACL, c.Version = d.string(), d.acl(), d.int32()
	}
}

// decodeSubs decodes the parts of a multi, each behind a header of type, done and
// error. The last header has done set.
func (c *Call) decodeSubs(d *decoder) {
	for d.err == nil {
		op, done := Op(d.int32()), d.bool()
		d.int32()
		if done || d.err != nil {
			return
		}
		switch op {
		case OpCreate, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck, OpGetChildren, OpGetData:
		default:
			d.fail()
			return
		}
		sub := Call{Op: op}
		sub.decodeBody(d)
		sub.Op = multiCreateOp(sub.Op, sub.Flags)
		c.Subs = append(c.Subs, sub)
	}
}

// multiCreateOp returns the operation that a create inside a multi becomes: there the
// flags decide, not the type.
func multiCreateOp(op Op, flags int32) Op {
	switch op {
	case OpCreate, OpCreateContainer:
		switch flags {
		case flagContainer:
			return OpCreateContainer
		case flagTTL, flagTTLSeq:
			return OpCreateTTL
		}
		return OpCreate
	}
	return op
}
