package engine

import (
	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

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
	if !ok || !s.order.serves() {
		ok = false
		c.abort()
	}
	if ok && r.call.Op != wire.OpConnect && !c.accept(r) {
		ok = false
	}
	q := c.held
	if ok {
		q.judging++
	}
	s.mu.Unlock()
	if !ok {
		return
	}
	verdict := Verdict{}
	if s.cfg.Intercept != nil {
		info := r.record()
		verdict = s.cfg.Intercept(&info)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q.judging--
	c.judge(r, verdict)
	if q.conn != c { // the client has come back meanwhile
		poke(q.conn.wake)
	}
}

// decode turns a frame into a request. It reports false for a frame that the real
// server closes the connection for.
func (c *conn) decode(frame []byte) (*request, bool) {
	s := c.srv
	r := &request{conn: c, received: s.now()}
	if !c.greeted {
		q, ok := wire.DecodeConnect(frame)
		r.call = wire.Call{Op: wire.OpConnect, Connect: &q}
		r.session = q.Session
		return r, ok
	}
	d := wire.NewDecoder(frame)
	r.xid = d.Int32()
	op := wire.Op(d.Int32())
	if d.Err() != nil {
		return nil, false
	}
	switch op {
	case wire.OpConnect:
		op = wire.OpCreateSession // a second connect request, inside the session
	case wire.OpCreateSession:
		op = wire.OpError // nobody knows it, as it is on the wire
	}
	r.session = c.session
	r.call = s.cfg.Release.Decode(op, d.Rest())
	return r, true
}

// accept takes a request and renews its session. A request of a session that is gone or
// closing is dropped without an answer.
func (c *conn) accept(r *request) bool {
	s := c.srv
	if c.closing {
		return false
	}
	r.ids = c.ids
	if r.call.Op == wire.OpAuth || r.call.Op == wire.OpSASL {
		return true
	}
	return s.order.hear(c)
}

// judge acts on a verdict: now, or later when the request is held.
func (c *conn) judge(r *request, v Verdict) {
	r.fate, r.code = v.fateOf(r.call.Op)
	r.late = v.ReplyDelay
	if v.Hold {
		c.held.hold(r, v)
		return
	}
	c.proceed(r)
}

// proceed lets a judged request run.
func (c *conn) proceed(r *request) {
	s := c.srv
	if s.closed || c.epoch != s.epoch {
		return
	}
	switch {
	case r.fate == FateRequestLost:
		s.finished(r)
		c.abort()
	case r.call.Op == wire.OpConnect:
		if c.closing {
			return
		}
		c.readOnlyAware = r.call.Connect.ReadOnly
		c.connect(r, *r.call.Connect)
	case r.fate == FateFailed:
		s.order.submit(r) // its answer is due behind those to the requests before it
	case r.call.Op == wire.OpAuth:
		c.auth(r)
	case r.call.Op == wire.OpSASL:
		c.sasl(r)
	case !s.cfg.Release.Knows(r.call.Op):
		c.unknown(r)
	default:
		if r.fate == FateDuplicate {
			first := *r
			first.mute = true // whoever repeats a request sees the answer to the last one
			s.order.submit(&first)
		}
		s.order.submit(r)
	}
}

// answerHeader answers with a header alone.
func (c *conn) answerHeader(r *request, zxid int64) {
	e := wire.NewFrame(16)
	e.Header(r.xid, zxid, r.code)
	c.respond(e.Frame(), r.late, false)
}

// auth adds an identity to the connection. It does not pass through the pipeline.
func (c *conn) auth(r *request) {
	s := c.srv
	if r.call.Bad {
		c.abort()
		return
	}
	id, code := access.Authenticate(r.call.Path, r.call.Data, c.remote)
	if len(c.ids) >= access.MaxIDs {
		code = wire.CodeAuthFailed
	}
	r.code = code
	s.finished(r)
	if r.fate == FateReplyLost {
		c.abort()
	}
	c.answerHeader(r, 0)
	if code != wire.CodeOK {
		c.shut()
		return
	}
	c.ids = access.With(c.ids, id)
}

// sasl answers a token of a SASL handshake as a server does that is not configured for it: with none.
func (c *conn) sasl(r *request) {
	if r.call.Bad {
		c.abort()
		return
	}
	c.srv.finished(r)
	if r.fate == FateReplyLost {
		c.abort()
	}
	e := wire.NewFrame(20)
	e.Header(r.xid, 0, wire.CodeOK)
	e.Buffer(nil)
	c.send(e.Frame(), r.late, false)
}

// unknown answers an operation that the server does not know and, as the real one, closes
// the connection.
func (c *conn) unknown(r *request) {
	r.code = wire.CodeUnimplemented
	c.srv.finished(r)
	c.answerHeader(r, -1)
	c.shut()
}
