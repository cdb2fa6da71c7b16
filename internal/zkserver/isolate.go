package zkserver

import (
	"bytes"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkserver/tree"
	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// Isolate cuts a member off from all others; its clients still reach it. Until it notices, after
// the limit, it goes on as before: it answers heartbeats and reads, and what it should tell or ask the
// leader waits. A leader without a majority goes on likewise, and commits nothing. Then it drops its clients.
func (e *Ensemble) Isolate(i int) (heal func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[i].member
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
	s := e.members[i]
	m := s.member
	if s.leads() {
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
		s.follow()
		e.trim()
	}, true
}

// Elect makes a member the leader at once. All members drop their clients. It reports false if the
// member cannot reach a majority.
func (e *Ensemble) Elect(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, s := range e.members {
		if s.connected() {
			n++
		}
	}
	s := e.members[i]
	if n <= e.n/2 || !s.connected() || s.member.blank || e.closed {
		return false
	}
	s.follow() // it must not win without having seen what was committed
	for _, o := range e.members {
		if o.connected() {
			e.leave(o)
		}
	}
	e.takeOver(s)
	e.review()
	return true
}

// Disconnect drops the connections that a session has now, at any member. It reports whether there was one.
func (e *Ensemble) Disconnect(id int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	for _, s := range e.members {
		found = s.disconnect(id) || found
	}
	return found
}

// thawed lets a member go on that others may have given up meanwhile.
func (s *Server) thawed() {
	m := s.member
	if !m.lostAt.IsZero() && time.Since(m.lostAt) >= m.patience() {
		m.ens.leave(s)
	}
	if s.leads() && m.ens.quorate() {
		s.runExpiry() // what is due; then what others have sent arrives
	}
	m.ens.review()
}

// comeBack starts a member, with its data or with none.
func (s *Server) comeBack(keep bool) {
	e := s.member.ens
	e.leave(s)
	if !keep {
		s.tree = tree.New()
		s.member.blank = true
	}
	e.review()
}

// revalidate moves an existing session to a connection of this member. Only the leader knows whether
// it still lives; another member that has a connection of it is not told.
func (s *Server) revalidate(c *conn, r *request, q wire.ConnectRequest) {
	for old := range s.clients[q.Session] {
		if old != c && old.session == q.Session {
			old.shut()
		}
	}
	s.supersede(q.Session, c)
	c.session = q.Session
	if !bytes.Equal(q.Password, password(q.Session)) {
		r.code = wire.CodeSessionExpired
		s.finishConnect(r)
		return
	}
	s.toLeader(func(l *Server) {
		if c.closing {
			return
		}
		if sess := s.sessions[q.Session]; sess == nil || sess.closing {
			r.code = wire.CodeSessionExpired
		} else {
			sess.conn, sess.timeout, sess.lastHeard, sess.owner = c, c.timeout, s.now(), s
			l.touch(sess, c.timeout)
		}
		s.finishConnect(r)
	})
}
