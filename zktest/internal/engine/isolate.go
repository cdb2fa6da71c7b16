package engine

import (
	"bytes"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Isolate cuts a member off from all others; its clients still reach it. Until it notices, after
// the limit, it goes on as before: it answers heartbeats and reads, and what it should tell or ask the
// leader waits. A leader without a majority goes on likewise, and commits nothing. Then it drops its clients.
func (e *Ensemble) Isolate(i int) (heal func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[i]
	m.cuts++
	e.review()
	healed := false
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if healed {
			return
		}
		healed = true
		m.cuts--
		e.review()
	}
}

// Lag keeps a follower from applying what is committed. It reports false for a leader, which cannot
// lag. The lag ends also when the member is elected.
func (e *Ensemble) Lag(i int) (catchUp func(), ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[i]
	if m.leads() {
		return nil, false
	}
	m.lags++
	id, done := m.lagID, false
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if done || id != m.lagID {
			return
		}
		done = true
		m.lags--
		m.follow()
		e.trim()
	}, true
}

// Elect makes a member the leader at once. All members drop their clients. It reports false if the
// member cannot reach a majority.
func (e *Ensemble) Elect(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, m := range e.members {
		if m.connected() {
			n++
		}
	}
	m := e.members[i]
	if n <= e.n/2 || !m.connected() || m.blank || e.closed {
		return false
	}
	m.follow() // it must not win without having seen what was committed
	for _, o := range e.members {
		if o.connected() {
			e.leave(o)
		}
	}
	e.takeOver(m)
	e.review()
	return true
}

// Disconnect drops the connections that a session has now, at any member. It reports whether there was one.
func (e *Ensemble) Disconnect(id int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	for _, m := range e.members {
		found = m.disconnect(id) || found
	}
	return found
}

// halted is the end of everything that runs: the member leaves the others.
func (m *member) halted() {
	m.ens.leave(m)
	m.ens.review()
}

// froze is called when the member has been frozen.
func (m *member) froze() { m.ens.review() }

// thawed lets a member go on that others may have given up meanwhile.
func (m *member) thawed() {
	if !m.lostAt.IsZero() && time.Since(m.lostAt) >= m.patience() {
		m.ens.leave(m)
	}
	if m.leads() && m.ens.quorate() {
		m.runExpiry() // what is due; then what others have sent arrives
	}
	m.ens.review()
}

// restarted starts a member, with its data or with none.
func (m *member) restarted(keep bool) {
	e := m.ens
	e.leave(m)
	if !keep {
		m.tree = tree.New()
		m.blank = true
	}
	e.review()
}

// begin leaves a new session to the leader.
func (m *member) begin(_ *conn, r *request) { m.submit(r) }

// revalidate moves an existing session to a connection of this member. Only the leader knows whether
// it still lives; another member that has a connection of it is not told.
func (m *member) revalidate(c *conn, r *request, q wire.ConnectRequest) {
	for old := range m.clients[q.Session] {
		if old != c && old.session == q.Session {
			old.shut()
		}
	}
	m.supersede(q.Session, c)
	c.session = q.Session
	if !bytes.Equal(q.Password, password(q.Session)) {
		r.code = wire.CodeSessionExpired
		m.finishConnect(r)
		return
	}
	m.toLeader(func(l *member) {
		if c.closing {
			return
		}
		if sess := m.sessions[q.Session]; sess == nil || sess.closing {
			r.code = wire.CodeSessionExpired
		} else {
			sess.conn, sess.timeout, sess.lastHeard, sess.owner = c, c.timeout, m.now(), m
			l.touch(sess, c.timeout)
		}
		m.finishConnect(r)
	})
}

// apart returns, in words, which of these faults are at work.
func (m *member) apart() []string {
	var faults []string
	if m.cuts > 0 {
		faults = append(faults, "the member is isolated")
	}
	if m.lags > 0 {
		faults = append(faults, "the member lags")
	}
	return faults
}
