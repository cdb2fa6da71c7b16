package zkserver

import "time"

type role int

const (
	looking   role = iota // has no leader: serves nobody
	following             // has a leader, or has not noticed that it lost it
	leading
)

// member is what a server of an ensemble has in addition. Guarded by Server.mu.
type member struct {
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

	uplink []func(leader *Server)  // what it has sent to the leader in vain, so far
	heard  map[int64]time.Duration // sessions to report to the leader, with their timeouts
	report *time.Timer             // for that
	lostAt time.Time               // since when it has no contact; zero when it has
	notice *time.Timer             // when it notices
}

func newMember(e *Ensemble, i int) *member {
	return &member{ens: e, index: i, heard: map[int64]time.Duration{}}
}

// connected tells whether a member can reach the others that are connected.
func (s *Server) connected() bool {
	return s.member.cuts == 0 && !s.stopped && !s.frozen && !s.closed
}

// leads tells whether the server orders transactions, which one on its own always does.
func (s *Server) leads() bool {
	return s.member == nil || s.member.ens.leader == s
}

// deposed tells whether another member leads by now, which this one has not noticed.
func (s *Server) deposed() bool {
	return s.member.role == leading && !s.leads()
}

// inContact tells whether a member and the leader can talk. A leader has contact with itself.
func (s *Server) inContact() bool {
	m := s.member
	l := m.ens.leader
	switch {
	case l == nil || m.term != m.ens.term:
		return false
	case l == s:
		return m.role == leading
	}
	return m.role == following && s.connected() && l.connected()
}

// toLeader hands something to the leader: now, or when there is contact again, as TCP would.
func (s *Server) toLeader(send func(leader *Server)) {
	m := s.member
	if s.inContact() && len(m.uplink) == 0 {
		send(m.ens.leader)
		return
	}
	if m.role != looking {
		m.uplink = append(m.uplink, send)
	}
}

// heardOf notes that a session's client has been heard. The leader knows at once what it hears itself; the
// others tell it in their answer to its heartbeat, each half tick.
func (s *Server) heardOf(id int64, timeout time.Duration) {
	m := s.member
	m.heard[id] = timeout
	if m.report == nil {
		every := s.cfg.Tick / 2
		m.report = time.AfterFunc(every-s.elapsed()%every, s.reportDue)
	}
}

func (s *Server) reportDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.member
	m.report = nil
	if s.closed || m.role != following {
		return
	}
	if s.inContact() {
		s.reportHeard()
		return
	}
	m.report = time.AfterFunc(s.cfg.Tick/2, s.reportDue)
}

func (s *Server) reportHeard() {
	m := s.member
	l := m.ens.leader
	for id, timeout := range m.heard {
		if sess := s.sessions[id]; sess != nil && !sess.closing {
			sess.lastHeard = s.now()
			l.touch(sess, timeout)
		}
	}
	clear(m.heard)
}
