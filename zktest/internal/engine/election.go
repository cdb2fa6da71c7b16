package engine

import "time"

// review looks who is in contact with whom after something has changed. It is called with the lock held.
func (e *Ensemble) review() {
	if e.closed {
		return
	}
	for again := true; again; {
		again = false
		for _, m := range e.members {
			switch {
			case !e.lost(m):
				m.regain()
			case e.noticesAtOnce(m):
				e.leave(m)
				again = true
			default:
				m.suspect()
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

// lost reports whether a member serves without being in contact with those that it needs for that.
func (e *Ensemble) lost(m *member) bool {
	switch m.role {
	case leading:
		return e.leader != m || !e.quorate()
	case following:
		return !m.inContact()
	}
	return false
}

// noticesAtOnce reports whether a member sees the connection to the others closed, or whether it has
// to wait for it to time out.
func (e *Ensemble) noticesAtOnce(m *member) bool {
	if !m.connected() {
		return false
	}
	if m.role == following {
		return e.leader == nil || m.term != e.term || e.leader.stopped || e.leader.closed
	}
	if e.leader != m {
		return true
	}
	believed := 0
	for _, o := range e.members {
		if o == m || o.role == following && o.term == m.term && !o.stopped && !o.closed {
			believed++
		}
	}
	return believed <= e.n/2
}

// suspect lets a member without contact notice that in time.
func (m *member) suspect() {
	if m.lostAt.IsZero() {
		m.lostAt = time.Now()
	}
	if m.notice != nil || m.frozen || m.stopped {
		return
	}
	m.notice = time.AfterFunc(m.patience()-time.Since(m.lostAt), m.noticeDue)
}

// patience is how long a member takes to notice that it has no contact.
func (m *member) patience() time.Duration {
	if m.role == leading {
		return m.ens.cfg.LeaderLimit
	}
	return m.ens.cfg.SyncLimit
}

func (m *member) noticeDue() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notice = nil
	if m.frozen || m.stopped || m.closed || !m.ens.lost(m) {
		return
	}
	m.ens.leave(m)
	m.ens.review()
}

// regain ends a loss of contact that was too short to be noticed: what was sent meanwhile arrives. That is, from
// the leader, heartbeats too, which the member answers before it passes on any answer that was sent after them.
func (m *member) regain() {
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
		m.reportHeard()
	}
	m.lostAt = time.Time{}
	m.follow()
}

// leave makes a member give up its leader, or its leadership: it drops its clients.
func (e *Ensemble) leave(m *member) {
	if e.leader == m {
		e.stopLeading()
		e.leader = nil
	}
	m.role, m.uplink, m.lostAt = looking, nil, time.Time{}
	stopTimer(&m.notice)
	stopTimer(&m.report)
	clear(m.heard)
	m.disconnectAll()
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

func (e *Ensemble) voters() []*member {
	var out []*member
	for _, m := range e.members {
		if m.role == looking && m.connected() {
			out = append(out, m)
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
func (e *Ensemble) winner(voters []*member) *member {
	var best *member
	seen := -1
	for _, m := range voters {
		n := m.received
		for _, r := range e.pending {
			if r.reached&(1<<m.index) != 0 {
				n++
			}
		}
		if m.blank {
			n = 0
		}
		if n >= seen {
			best, seen = m, n
		}
	}
	return best
}
