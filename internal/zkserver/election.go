package zkserver

import "time"

// epochBits is how far left of the counter a zxid has the number of its leader.
const epochBits = 32

// review looks who is in contact with whom after something has changed. It is called with the lock held.
func (e *Ensemble) review() {
	if e.closed {
		return
	}
	for again := true; again; {
		again = false
		for _, s := range e.members {
			switch {
			case !e.lost(s):
				s.regain()
			case e.noticesAtOnce(s):
				e.leave(s)
				again = true
			default:
				s.suspect()
			}
		}
	}
	e.admit()
	e.callBallot()
	e.trim()
	if l := e.leader; l != nil && !l.frozen && e.quorate() {
		l.commitPending()
		l.runExpiry()
		l.armCommit()
	}
}

// lost tells whether a member serves without being in contact with those that it needs for that.
func (e *Ensemble) lost(s *Server) bool {
	switch s.member.role {
	case leading:
		return e.leader != s || !e.quorate()
	case following:
		return !s.inContact()
	}
	return false
}

// noticesAtOnce tells whether a member sees the connection to the others closed, or whether it has
// to wait for it to time out.
func (e *Ensemble) noticesAtOnce(s *Server) bool {
	m := s.member
	if !s.connected() {
		return false
	}
	if m.role == following {
		return e.leader == nil || m.term != e.term || e.leader.stopped || e.leader.closed
	}
	if e.leader != s {
		return true
	}
	believed := 0
	for _, o := range e.members {
		if o == s || o.member.role == following && o.member.term == m.term && !o.stopped && !o.closed {
			believed++
		}
	}
	return believed <= e.n/2
}

// suspect lets a member without contact notice that in time.
func (s *Server) suspect() {
	m := s.member
	if m.lostAt.IsZero() {
		m.lostAt = time.Now()
	}
	if m.notice != nil || s.frozen || s.stopped {
		return
	}
	m.notice = time.AfterFunc(m.patience()-time.Since(m.lostAt), s.noticeDue)
}

// patience is how long a member takes to notice that it has no contact.
func (m *member) patience() time.Duration {
	if m.role == leading {
		return m.ens.cfg.LeaderLimit
	}
	return m.ens.cfg.SyncLimit
}

func (s *Server) noticeDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.member
	m.notice = nil
	if s.frozen || s.stopped || s.closed || !m.ens.lost(s) {
		return
	}
	m.ens.leave(s)
	m.ens.review()
}

// regain ends a loss of contact that was too short to be noticed: what was sent meanwhile arrives. That is, from
// the leader, heartbeats too, which the member answers before it passes on any answer that was sent after them.
func (s *Server) regain() {
	m := s.member
	stopTimer(&m.notice)
	if m.role != following {
		m.lostAt = time.Time{}
		return
	}
	for i := range m.ens.pending {
		m.ens.pending[i].reached |= 1 << m.index
	}
	uplink := m.uplink
	m.uplink = nil
	for _, send := range uplink {
		send(m.ens.leader)
	}
	if !m.lostAt.IsZero() {
		s.reportHeard()
	}
	m.lostAt = time.Time{}
	s.follow()
}

// leave makes a member give up its leader, or its leadership: it drops its clients.
func (e *Ensemble) leave(s *Server) {
	m := s.member
	if e.leader == s {
		e.stopLeading()
		e.leader = nil
	}
	m.role, m.uplink, m.lostAt = looking, nil, time.Time{}
	stopTimer(&m.notice)
	stopTimer(&m.report)
	clear(m.heard)
	s.disconnectAll()
}

// callBallot starts an election if a majority looks for a leader, and calls it off if not.
func (e *Ensemble) callBallot() {
	if len(e.voters()) <= e.n/2 {
		stopTimer(&e.ballot)
		return
	}
	if e.ballot == nil {
		e.ballot = time.AfterFunc(e.cfg.Election, e.ballotDue)
	}
}

func (e *Ensemble) voters() []*Server {
	var out []*Server
	for _, s := range e.members {
		if s.member.role == looking && s.connected() {
			out = append(out, s)
		}
	}
	return out
}

func (e *Ensemble) ballotDue() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ballot = nil
	if voters := e.voters(); !e.closed && len(voters) > e.n/2 {
		e.takeOver(e.winner(voters))
		e.review()
	}
}

// winner returns who has seen most of the history, and of equals the last.
func (e *Ensemble) winner(voters []*Server) *Server {
	var best *Server
	seen := -1
	for _, s := range voters {
		n := s.member.received
		for _, r := range e.pending {
			if r.reached&(1<<s.member.index) != 0 {
				n++
			}
		}
		if s.member.blank {
			n = 0
		}
		if n >= seen {
			best, seen = s, n
		}
	}
	return best
}
