package wire

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
	Watches *WatchLists // of setWatches and setWatches2
	Kind    int32       // of watches: the mode of an addWatch, the type of a checkWatches or removeWatches

	Timeout int32 // milliseconds, of a connect request inside a session

	Connect *ConnectRequest // of a connect

	Null bool // a sync or a create without a path, or a multi with a part without one

	// Bad marks a body that could not be decoded: the request is still prepared,
	// and costs a zxid if it is a write, because the real server reads the body that late.
	Bad bool
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
		return c.Watches.paths()
	case c.Path == "" || c.Op == OpAuth:
		return nil
	}
	return []string{c.Path}
}

// Decode decodes a request body as the release does. It reports a malformed body in Call.Bad.
func (r Release) Decode(op Op, body []byte) Call {
	d := NewDecoder(body)
	c := Call{Op: op}
	switch op {
	case OpMulti, OpMultiRead:
		c.decodeSubs(d, r)
	case OpSetWatches, OpSetWatches2:
		c.Watches = decodeWatchLists(d, op == OpSetWatches2)
	default:
		c.decodeBody(d)
		c.limitFlags(r)
	}
	if d.Err() != nil {
		return Call{Op: op, Bad: true}
	}
	return c
}

// limitFlags makes flags that the release does not know into some that no release knows.
func (c *Call) limitFlags(r Release) {
	if c.Flags > r.flags() {
		c.Flags = -1
	}
}

func (c *Call) decodeBody(d *Decoder) {
	switch c.Op {
	case OpCreate, OpCreate2, OpCreateContainer:
		c.Path, c.Data, c.ACL, c.Flags = d.nullable(), d.Buffer(), d.ACL(), d.Int32()
		c.Null = d.null
	case OpCreateTTL:
		c.Path, c.Data, c.ACL, c.Flags, c.TTL = d.nullable(), d.Buffer(), d.ACL(), d.Int32(), d.Int64()
		c.Null = d.null
	case OpDelete:
		c.Path, c.Version = d.Text(), d.Int32()
	case OpCheck:
		c.Path, c.Version = d.nullable(), d.Int32()
	case OpSetData:
		c.Path, c.Data, c.Version = d.nullable(), d.Buffer(), d.Int32()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		c.Path, c.Watch = d.Text(), d.Bool()
	case OpCheckWatches:
		c.Path, c.Kind = d.Text(), d.Int32()
	case OpAddWatch, OpRemoveWatches:
		c.Path = d.nullable()
		if d.null {
			c.Path = NullName // the real server keeps it apart from the empty path
		}
		c.Kind = d.Int32()
	case OpGetACL, OpGetAllChildrenNumber:
		c.Path = d.Text()
	case OpGetEphemerals:
		c.Path = d.nullable()
	case OpReconfig:
		d.nullable() // servers to join, to leave, and to have
		d.nullable()
		d.nullable()
		d.Int64()
	case OpSASL:
		if c.Data = d.Buffer(); c.Data == nil {
			d.fail()
		}
	case OpCreateSession:
		c.Timeout = d.Int32()
	case OpSync:
		c.Null = len(d.Rest()) >= 4 && string(d.Rest()[:4]) == "\xff\xff\xff\xff"
		c.Path = d.nullable()
	case OpAuth:
		d.Int32() // type, unused
		c.Path, c.Data = d.nullable(), d.Buffer()
	case OpSetACL:
		c.Path, c.ACL, c.Version = d.nullable(), d.ACL(), d.Int32()
	}
}

// decodeSubs decodes the parts of a multi, each behind a header of type, done and
// error. The last header has done set.
func (c *Call) decodeSubs(d *Decoder, r Release) {
	d.lax = true
	for d.Err() == nil {
		op, done := Op(d.Int32()), d.Bool()
		d.Int32()
		if done || d.Err() != nil {
			break
		}
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck, OpGetChildren, OpGetData:
		default:
			d.fail()
			return
		}
		if !r.part(op) {
			d.fail()
			return
		}
		d.null = false
		sub := Call{Op: op}
		sub.decodeBody(d)
		sub.limitFlags(r)
		sub.asPart(d.null)
		if len(c.Subs) > 0 && c.Subs[0].Reads() != sub.Reads() {
			d.fail() // reads and writes do not mix
		}
		sub.Bad = sub.Bad || c.Op == OpMulti && sub.Reads()
		c.Null = c.Null || sub.Null
		c.Subs = append(c.Subs, sub)
	}
}

func (c *Call) Reads() bool { return c.Op == OpGetChildren || c.Op == OpGetData }

// asPart turns a request into what it is inside a multi: of a create the flags decide, not the type, and
// a read sets no watch.
func (c *Call) asPart(null bool) {
	c.Null, c.Watch = null, false
	ttl := c.Flags == FlagTTL || c.Flags == FlagTTLSequential
	switch c.Op {
	case OpCreate, OpCreate2, OpCreateContainer:
		c.Bad = ttl // the time to live is missing, which the real server notices when it is this part's turn
	case OpCreateTTL:
		if ttl {
			return
		}
	default:
		return
	}
	c.Op = OpCreate
	if c.Flags == FlagContainer {
		c.Op = OpCreateContainer
	}
}
