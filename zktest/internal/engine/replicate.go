package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// submit takes a request into a member of an ensemble. Requests of one connection are answered in their order; a
// read waits for nobody else's writes.
func (m *member) submit(r *request) {
	if r.conn == nil { // expiry and the like: only the leader does that
		m.lead(r)
		return
	}
	r.origin = m
	r.conn.line = append(r.conn.line, r)
	switch {
	case r.fate == FateFailed: // by a rule, here
		r.when = m.now()
	case r.call.Op == wire.OpSync && m.deposed() && len(m.uplink) == 0:
		r.when = m.now() // it believes that it leads, and nothing is under way
	case r.call.Op.Writes() || r.call.Op == wire.OpSync: // the leader orders them
		r.waits = true
		m.toLeader(func(l *member) { l.lead(r) })
	case m.leads():
		m.prepare(r) // looks at the session
	default:
		r.when = m.now()
	}
	m.settle(r.conn)
}

// lead gives a request its place in the history.
func (m *member) lead(r *request) {
	e := m.ens
	switch r.call.Op {
	case wire.OpSync:
		r.when = m.now() // the real leader does not look at the session: it answers behind its end, if there was one
	case wire.OpConnect:
		m.track(r)
		m.prepare(r)
	default:
		m.prepare(r)
	}
	r.reached = e.reached()
	now := time.Now()
	r.due = now
	if r.write() {
		if m.rolledOver(r) {
			return
		}
		r.due = now.Add(m.cfg.CommitLatency)
	}
	// A sync asks nobody: a leader that is cut off answers it.
	if len(e.pending) == 0 && !r.due.After(now) && (!r.write() || e.quorate()) {
		m.publish(r)
		return
	}
	e.pending = append(e.pending, r)
	m.armCommit()
}

// track begins a session that a member's client has asked for.
func (m *member) track(r *request) {
	c := r.conn
	sess := &session{id: r.session, timeout: c.timeout, lastHeard: m.now(), owner: r.origin}
	sess.heldOf(c)
	if !c.closing {
		sess.conn = c
	}
	m.sessions[sess.id] = sess
	m.touch(sess, c.timeout)
}

// publish commits a request of which the majority knows: each member applies it when it gets to it.
func (m *member) publish(r *request) {
	e := m.ens
	if r.write() && r.call.Op == wire.OpClose {
		if sess := m.sessions[r.session]; sess != nil {
			delete(m.sessions, r.session)
			m.expiry.remove(sess)
		}
	}
	if r.call.Op == wire.OpCreateSession && r.code == wire.CodeOK {
		m.renew(r) // not by whoever answers it: only the leader's timers end sessions
	}
	e.log = append(e.log, r)
	m.follow()
	if r.conn == nil {
		m.finished(r)
	}
	for _, o := range e.members {
		if o != m {
			o.follow()
		}
	}
	e.trim()
}

// follow applies what a member has not applied yet, as far as it hears of it.
func (m *member) follow() {
	if !m.inContact() {
		return
	}
	m.received = m.ens.base + len(m.ens.log)
	for m.lags == 0 && m.applied < m.received {
		m.applyNext()
	}
}

// applyNext applies the next entry of the log and answers it, if it is from here.
func (m *member) applyNext() {
	r := m.ens.log[m.applied-m.ens.base]
	m.applied++
	if r.write() {
		if r.call.Op == wire.OpClose {
			m.hangUp(r)
		}
		m.commit(r)
	}
	if r.origin == m {
		r.waits = false
		m.settle(r.conn)
	}
}

// hangUp closes the connections of a session that ends; not that on which the client has asked for it.
func (m *member) hangUp(r *request) {
	for c := range m.clients[r.session] {
		if c.session == r.session && c != r.conn {
			c.shut()
		}
	}
}

// settle answers the requests of a connection up to the first that still waits.
func (m *member) settle(c *conn) {
	for len(c.line) > 0 && !c.line[0].waits {
		r := c.line[0]
		c.line = c.line[1:]
		m.deliver(r)
	}
}

// trim forgets the entries that all members have applied.
func (e *Ensemble) trim() {
	done := e.base + len(e.log)
	for _, m := range e.members {
		if !m.blank {
			done = min(done, m.applied)
		}
	}
	n := done - e.base
	clear(e.log[:n])
	e.log, e.base = e.log[n:], done
}

// first reports whether a transaction is applied for the first time in the ensemble.
func (m *member) first(zxid int64) bool {
	e := m.ens
	first := zxid > e.announced
	e.announced = max(e.announced, zxid)
	return first
}

// moved reports whether a request failed because its session has gone to another server.
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
