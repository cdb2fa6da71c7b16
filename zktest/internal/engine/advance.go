package engine

import "time"

// Now returns the server's time of day.
func (s *Server) Now() time.Time { return s.now() }

// SetTime sets the server's time of day. Sessions do not go by it.
func (s *Server) SetTime(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := t.Sub(s.now())
	s.clock.skew.Add(int64(d))
	for _, sess := range s.sessions {
		sess.lastHeard = sess.lastHeard.Add(d)
	}
}

// Advance moves the server's clock and does, at its instant, what is due on the way. A session whose
// client the server could hear is taken to have sent heartbeats all along. What waits for its commit has waited
// long enough. A frozen or stopped server only gets older.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.order.orderer(); l != nil {
		s = l
	}
	target := s.elapsed() + d
	if s.idle() {
		s.clock.reach(target)
		return
	}
	for at := s.nextDue(); at != 0 && at <= target; at = s.nextDue() {
		s.commitAll()
		s.clock.reach(at)
		for sess := range s.expiry.buckets[at] {
			s.heartbeat(sess) // the others' come in time later
		}
		s.runExpiry()
		if at%s.cfg.ContainerInterval == 0 {
			s.reap()
		}
		s.commitAll()
	}
	s.clock.reach(target)
	for _, sess := range s.sessions {
		s.heartbeat(sess)
	}
	s.rearm()
}

func (s *Server) commitAll() {
	for len(s.pending) > 0 {
		s.finishFirst()
	}
}

// nextDue returns when the next session expires or the containers are looked at; 0 for never.
func (s *Server) nextDue() time.Duration {
	at := s.expiry.next()
	if s.tree.Reapable() == 0 {
		return at
	}
	every := s.cfg.ContainerInterval
	reap := (s.elapsed()/every + 1) * every
	if at == 0 {
		return reap
	}
	return min(at, reap)
}

// heartbeat renews a session whose client can be heard.
func (s *Server) heartbeat(sess *session) {
	if c := sess.conn; c == nil || sess.closing || !c.audible() {
		return
	}
	sess.lastHeard = s.now()
	s.touch(sess, sess.timeout)
}

// audible reports whether what the client sends reaches who decides about its session.
func (c *conn) audible() bool {
	l := c.srv.links[c.claimed]
	return (l == nil || l.blockRequests == 0) && c.srv.order.inContact()
}

// rearm sets the timers again after the clock has been moved.
func (s *Server) rearm() {
	s.runExpiry()
	if s.reapTimer != nil {
		s.reapTimer.Stop()
		s.reapTimer = nil
	}
	s.armReaper()
}
