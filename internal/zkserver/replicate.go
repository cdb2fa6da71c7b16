package zkserver

import (
	"time"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// enter takes a request into a member of an ensemble. Requests of one connection are answered in their order; a
// read waits for nobody else's writes.
func (s *Server) enter(r *request) {
	if r.conn == nil { // expiry and the like: only the leader does that
		s.lead(r)
		return
	}
	r.origin = s
	r.conn.line = append(r.conn.line, r)
	switch {
	case r.fate == FateFailed: // by a rule, here
		r.when = s.now()
	case r.call.Op == wire.OpSync && s.deposed() && len(s.member.uplink) == 0:
		r.when = s.now() // it believes that it leads, and nothing is under way
	case r.call.Op.Writes() || r.call.Op == wire.OpSync: // the leader orders them
		r.waits = true
		s.toLeader(func(l *Server) { l.lead(r) })
	case s.leads():
		s.prepare(r) // looks at the session
	default:
		r.when = s.now()
	}
	s.settle(r.conn)
}

// lead gives a request its place in the history.
func (s *Server) lead(r *request) {
	e := s.member.ens
	switch r.call.Op {
	case wire.OpSync:
		r.when = s.now() // the real leader does not look at the session: it answers behind its end, if there was one
	case wire.OpConnect:
		s.track(r)
		s.prepare(r)
	default:
		s.prepare(r)
	}
	r.reached = e.reached()
	now := time.Now()
	r.due = now
	if r.write() {
		if s.rolledOver(r) {
			return
		}
		r.due = now.Add(s.cfg.CommitLatency)
	}
	// A sync asks nobody: a leader that is cut off answers it.
	if len(e.pending) == 0 && !r.due.After(now) && (!r.write() || e.quorate()) {
		s.publish(r)
		return
	}
	e.pending = append(e.pending, r)
	s.armCommit()
}

// track begins a session that a member's client has asked for.
func (s *Server) track(r *request) {
	c := r.conn
	sess := &session{id: r.session, timeout: c.timeout, lastHeard: s.now(), owner: r.origin}
	sess.heldOf(c)
	if !c.closing {
		sess.conn = c
	}
	s.sessions[sess.id] = sess
	s.touch(sess, c.timeout)
}

// publish commits a request of which the majority knows: each member applies it when it gets to it.
func (s *Server) publish(r *request) {
	e := s.member.ens
	if r.write() && r.call.Op == wire.OpClose {
		if sess := s.sessions[r.session]; sess != nil {
			delete(s.sessions, r.session)
			s.expiry.remove(sess)
		}
	}
	if r.call.Op == wire.OpCreateSession && r.code == wire.CodeOK {
		s.renew(r) // not by whoever answers it: only the leader's timers end sessions
	}
	e.log = append(e.log, r)
	s.follow()
	if r.conn == nil {
		s.finished(r)
	}
	for _, m := range e.members {
		if m != s {
			m.follow()
		}
	}
	e.trim()
}

// follow applies what a member has not applied yet, as far as it hears of it.
func (s *Server) follow() {
	m := s.member
	if !s.inContact() {
		return
	}
	m.received = m.ens.base + len(m.ens.log)
	for m.lags == 0 && m.applied < m.received {
		s.applyNext()
	}
}

// applyNext applies the next entry of the log and answers it, if it is from here.
func (s *Server) applyNext() {
	m := s.member
	r := m.ens.log[m.applied-m.ens.base]
	m.applied++
	if r.write() {
		if r.call.Op == wire.OpClose {
			s.hangUp(r)
		}
		s.commit(r)
	}
	if r.origin == s {
		r.waits = false
		s.settle(r.conn)
	}
}

// hangUp closes the connections of a session that ends; not that on which the client has asked for it.
func (s *Server) hangUp(r *request) {
	for c := range s.clients[r.session] {
		if c.session == r.session && c != r.conn {
			c.shut()
		}
	}
}

// settle answers the requests of a connection up to the first that still waits.
func (s *Server) settle(c *conn) {
	for len(c.line) > 0 && !c.line[0].waits {
		r := c.line[0]
		c.line = c.line[1:]
		s.deliver(r)
	}
}

// trim forgets the entries that all members have applied.
func (e *Ensemble) trim() {
	done := e.base + len(e.log)
	for _, m := range e.members {
		if !m.member.blank {
			done = min(done, m.member.applied)
		}
	}
	n := done - e.base
	clear(e.log[:n])
	e.log, e.base = e.log[n:], done
}

// isFirst tells whether a transaction is applied for the first time in the ensemble.
func (s *Server) isFirst(zxid int64) bool {
	if s.member == nil {
		return true
	}
	e := s.member.ens
	first := zxid > e.announced
	e.announced = max(e.announced, zxid)
	return first
}

// moved tells whether a request failed because its session has gone to another server.
func (r *request) moved() bool {
	if r.code == wire.CodeSessionMoved {
		return true
	}
	for i := range r.txn {
		if r.txn[i].Code == wire.CodeSessionMoved {
			return true
		}
	}
	return false
}
