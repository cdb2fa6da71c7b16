package zktest

import "time"

// WithManualClock stops the server's clock, for clients on TCP: sessions and containers end only in
// [Server.Advance].
func WithManualClock() Option {
	return func(o *options) { o.cfg.ManualClock = true }
}

// Advance moves the server's clock by d, at once. What is due happens in order, each at its instant. A
// connected client counts as having sent its heartbeats, unless [Server.Partition] or [Server.DropRequests]
// holds.
func (s *Server) Advance(d time.Duration) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if d < 0 {
		s.errorf("zktest: Advance(%v): time does not go back; SetTime sets the time of day", d)
		return
	}
	s.zk.Advance(d)
	s.wake()
}

// SetTime sets the time of day that stamps nodes, requests and transactions. It may go back.
func (s *Server) SetTime(t time.Time) { s.zk.SetTime(t) }

// Now returns the server's time of day.
func (s *Server) Now() time.Time { return s.zk.Now() }
