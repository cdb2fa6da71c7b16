package engine

import "time"

// ConnEvent says that a connection was opened or has ended.
type ConnEvent struct {
	Time    time.Time
	Open    bool
	Remote  string // address with port; "pipe" in memory
	Session int64  // at its end: whose it was; 0 if it never had a session
}

func (c *conn) tell(open bool) {
	s := c.srv
	if open {
		s.stats.accepted++
	}
	if s.cfg.OnConn != nil {
		s.cfg.OnConn(ConnEvent{Time: s.now(), Open: open, Remote: c.nc.RemoteAddr().String(), Session: c.session})
	}
}

// Connections returns how many connections there are, and how many there have been in all.
func (s *Server) Connections() (open, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), int(s.stats.accepted)
}
