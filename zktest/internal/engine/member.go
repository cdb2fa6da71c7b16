package engine

import "time"

type role int

const (
	looking   role = iota // has no leader: serves nobody
	following             // has a leader, or has not noticed that it lost it
	leading
)

// member is a server of an ensemble. Guarded by Server.mu.
type member struct {
	*Server
	ens   *Ensemble
	index int
	role  role
	term  int // of the leader that it is or follows

	cuts  int  // what keeps it apart from all others
	lags  int  // what keeps it from applying transactions
	lagID int  // counts elections, which end all lags
	blank bool // its data are gone

	received int // how many entries of the log it has got
	applied  int // how many of them its tree holds

	uplink []func(leader *member)  // what it has sent to the leader in vain, so far
	heard  map[int64]time.Duration // sessions to report to the leader, with their timeouts
	report *time.Timer             // for that
	lostAt time.Time               // since when it has no contact; zero when it has
	notice *time.Timer             // when it notices
}

// newMember makes a server the i-th member of an ensemble.
func newMember(e *Ensemble, s *Server, i int) *member {
	m := &member{Server: s, ens: e, index: i, heard: map[int64]time.Duration{}}
	s.order = m
	return m
}

// connected reports whether a member can reach the others that are connected.
func (m *member) connected() bool {
	return m.cuts == 0 && !m.stopped && !m.frozen && !m.closed
}

// leads reports whether the member orders transactions.
func (m *member) leads() bool { return m.ens.leader == m }

// commits reports whether the member leads, and what it orders can be committed.
func (m *member) commits() bool { return m.leads() && m.ens.quorate() }

// serves reports whether the member has a leader. Without one it only answers four-letter words.
func (m *member) serves() bool { return m.role != looking }

// orderer returns the leader, if it can do anything.
func (m *member) orderer() *Server {
	if l := m.ens.leader; l != nil && !l.idle() {
		return l.Server
	}
	return nil
}

// views returns all members.
func (m *member) views() []*Server {
	all := make([]*Server, 0, m.ens.n)
	for _, o := range m.ens.members {
		all = append(all, o.Server)
	}
	return all
}

// standing is what the member's four-letter words say about it.
func (m *member) standing() standing {
	st := standing{index: m.index, number: m.index + 1, mode: "follower", peer: "following - broadcast", members: m.ens.n}
	if !m.leads() {
		return st
	}
	st.mode, st.peer = "leader", "leading - broadcast"
	for _, o := range m.ens.members {
		if o != m && o.inContact() {
			st.followers++
		}
	}
	return st
}

// deposed reports whether another member leads by now, which this one has not noticed.
func (m *member) deposed() bool {
	return m.role == leading && !m.leads()
}

// inContact reports whether a member and the leader can talk. A leader has contact with itself.
func (m *member) inContact() bool {
	l := m.ens.leader
	switch {
	case l == nil || m.term != m.ens.term:
		return false
	case l == m:
		return m.role == leading
	}
	return m.role == following && m.connected() && l.connected()
}

// toLeader hands something to the leader: now, or when there is contact again, as TCP would.
func (m *member) toLeader(send func(leader *member)) {
	if m.inContact() && len(m.uplink) == 0 {
		send(m.ens.leader)
		return
	}
	if m.role != looking {
		m.uplink = append(m.uplink, send)
	}
}

// hear notes that a session's client has been heard. The leader knows at once what it hears itself; the
// others do not know whether the session lives, and tell the leader in their answer to its heartbeat, each half tick.
func (m *member) hear(c *conn) bool {
	if m.leads() {
		return m.Server.hear(c)
	}
	m.heard[c.session] = c.timeout
	if m.report == nil {
		every := m.cfg.Tick / 2
		m.report = time.AfterFunc(every-m.elapsed()%every, m.reportDue)
	}
	return true
}

func (m *member) reportDue() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report = nil
	if m.closed || m.role != following {
		return
	}
	if m.inContact() {
		m.reportHeard()
		return
	}
	m.report = time.AfterFunc(m.cfg.Tick/2, m.reportDue)
}

func (m *member) reportHeard() {
	l := m.ens.leader
	for id, timeout := range m.heard {
		if sess := m.sessions[id]; sess != nil && !sess.closing {
			sess.lastHeard = m.now()
			l.touch(sess, timeout)
		}
	}
	clear(m.heard)
}
