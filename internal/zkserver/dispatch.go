package zkserver

import "time"

// handle takes one arrival that is due. It runs on the pump, one at a time per connection.
func (c *conn) handle(a *arrival) {
	s := c.srv
	switch {
	case a.eof:
		s.mu.Lock()
		c.abort()
		s.mu.Unlock()
	case a.word != "":
		c.handleWord(a.word)
	case a.req != nil: // judged before, and now released
		s.mu.Lock()
		defer s.mu.Unlock()
		c.proceed(a)
	default:
		c.handleFrame(a)
	}
}

// handleFrame decodes a frame, has it judged by the interceptor and acts on the verdict.
func (c *conn) handleFrame(a *arrival) {
	s := c.srv
	c.arrived(4 + len(a.frame))
	r, ok := c.decode(a.frame)
	s.mu.Lock()
	if !ok || !s.serving() {
		ok = false
		c.abort()
	}
	if ok && r.call.Op != OpConnect && !c.accept(r) {
		ok = false
	}
	s.mu.Unlock()
	if !ok {
		return
	}
	a.req = r
	verdict := Verdict{}
	if s.cfg.Intercept != nil {
		info := r.record()
		verdict = s.cfg.Intercept(&info)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.judge(a, verdict)
}

// decode turns a frame into a request. It reports false for a frame that the real
// server closes the connection for.
func (c *conn) decode(frame []byte) (*request, bool) {
	s := c.srv
	r := &request{conn: c, received: s.now()}
	if !c.greeted {
		q, ok := decodeConnect(frame)
		r.call = Call{Op: OpConnect, connect: &q}
		r.session = q.session
		return r, ok
	}
	d := &decoder{b: frame}
	r.xid = d.int32()
	op := Op(d.int32())
	if d.err != nil {
		return nil, false
	}
	switch op {
	case OpConnect:
		op = opCreateSession // a second connect request, inside the session
	case opCreateSession:
		op = opError // nobody knows it, as it is on the wire
	}
	r.session = c.session
	r.call = decodeCall(op, d.b)
	return r, true
}

// accept counts a request and renews its session. A request of a session that is gone or
// closing is dropped without an answer.
func (c *conn) accept(r *request) bool {
	s := c.srv
	if c.closing {
		return false
	}
	r.ids = c.ids
	if r.call.Op == OpAuth || r.call.Op == OpSASL {
		return true
	}
	if !s.leads() { // a follower does not know
		s.heardOf(c.session, c.timeout)
		return true
	}
	sess := s.sessions[c.session]
	if sess == nil || sess.closing {
		return false
	}
	sess.lastHeard = s.now()
	s.touch(sess, c.timeout)
	return true
}

// judge acts on a verdict: now, or later when the request is held.
func (c *conn) judge(a *arrival, v Verdict) {
	r := a.req
	r.fate, r.code = v.fateOf(r.call.Op)
	r.late = v.ReplyDelay
	if !v.Hold {
		c.proceed(a)
		return
	}
	a.hold = v.Release
	if a.hold == nil {
		a.hold = make(chan struct{})
	}
	if v.Delay > 0 {
		a.until = time.Now().Add(v.Delay)
	}
	a.queued, a.onDrop = v.Queued, v.OnDrop
	c.in.putBack(a)
}

// proceed lets a judged request run.
func (c *conn) proceed(a *arrival) {
	s, r := c.srv, a.req
	if s.closed || c.epoch != s.epoch {
		return
	}
	if c.heir != nil {
		if a.hold != nil && !a.queued {
			c.drop(a)
			return
		}
	}
	switch {
	case r.fate == FateRequestLost:
		s.finished(r)
		c.abort()
	case r.fate == FateFailed:
		c.fail(r)
	case r.call.Op == OpConnect:
		if c.closing {
			return
		}
		c.readOnlyAware = r.call.connect.readOnly
		c.connect(r, *r.call.connect)
	case r.call.Op == OpAuth:
		c.auth(r)
	case r.call.Op == OpSASL:
		c.sasl(r)
	case !known(r.call.Op):
		c.unknown(r)
	default:
		if r.fate == FateDuplicate {
			first := *r
			first.mute = true // whoever repeats a request sees the answer to the last one
			s.submit(&first)
		}
		s.submit(r)
	}
}

// fail answers with an error that an interceptor made up.
func (c *conn) fail(r *request) {
	s := c.srv
	if r.call.Op == OpConnect {
		c.greeted = true
		s.finishConnect(r)
		return
	}
	s.finished(r)
	c.sendHeader(r.xid, s.tree.zxid, r.code)
}

func (c *conn) sendHeader(xid int32, zxid int64, code Code) {
	e := newFrame(16)
	e.int32(xid)
	e.int64(zxid)
	e.int32(int32(code))
	c.respond(e.frame())
}

// auth adds an identity to the connection. It does not pass through the pipeline.
func (c *conn) auth(r *request) {
	s := c.srv
	if r.call.bad {
		c.abort()
		return
	}
	id, code := authenticate(r.call.Path, r.call.Data, c.remote)
	if len(c.ids) >= maxIDs {
		code = CodeAuthFailed
	}
	r.code = code
	s.finished(r)
	if r.fate == FateReplyLost {
		c.abort()
	}
	c.sendHeader(r.xid, 0, code)
	if code != CodeOK {
		c.shut()
		return
	}
	c.ids = withID(c.ids, id)
}

// sasl answers a token of a SASL handshake as a server does that is not configured for it: with none.
func (c *conn) sasl(r *request) {
	if r.call.bad {
		c.abort()
		return
	}
	c.srv.finished(r)
	if r.fate == FateReplyLost {
		c.abort()
	}
	e := newFrame(20)
	e.int32(r.xid)
	e.int64(0)
	e.int32(0)
	e.buffer(nil)
	c.send(e.frame())
}

// unknown answers an operation that the server does not know and, as the real one, closes
// the connection.
func (c *conn) unknown(r *request) {
	r.code = CodeUnimplemented
	c.srv.finished(r)
	c.sendHeader(r.xid, -1, CodeUnimplemented)
	c.shut()
}

// known tells whether the server serves an operation. Others are answered "unimplemented".
func known(op Op) bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer, OpSetData, OpSetACL,
		OpExists, OpGetData, OpGetACL, OpGetChildren, OpGetChildren2, OpSync, OpCheck, OpMulti, OpMultiRead,
		OpAuth, OpSASL, OpPing, OpClose, opCreateSession, OpReconfig,
		OpGetEphemerals, OpGetAllChildrenNumber, OpWhoAmI,
		OpSetWatches, OpSetWatches2, OpAddWatch, OpCheckWatches, OpRemoveWatches:
		return true
	}
	return false
}
