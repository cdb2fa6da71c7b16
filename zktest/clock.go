package zktest

import "time"

// WithManualClock stops the server's clock: sessions expire, and empty containers are removed, only in
// [Server.Advance], also on a slow machine. It is for clients on TCP, which
// cannot run in a synctest bubble; in a bubble the test controls time anyway.
//
// Nothing changes for clients: their heartbeats follow their own clocks and are answered. Delays and
// latencies are in real time, too.
func WithManualClock() Option {
	return func(o *options) { o.cfg.ManualClock = true }
}

// Advance moves the server's clock by d, at once. Sessions and empty containers that are due in that time go in
// order, each at its instant, before Advance returns. A client that is connected counts as having sent its
// heartbeats, unless [Server.Partition] or [Server.DropRequests] holds; [Server.Expire] expires the session of a
// live client. A frozen or stopped server does what is due when it goes on. A negative d fails the test.
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

// SetTime sets the time of day with which the server stamps nodes, requests and transactions. It goes on from there,
// or with [WithManualClock] stands still. Sessions do not depend on it, and it may go back, as on
// a real server whose clock is set.
func (s *Server) SetTime(t time.Time) { s.zk.SetTime(t) }

// Now returns the server's time of day: that of the process, unless one of
// [WithManualClock], [Server.Advance] and [Server.SetTime] was used.
func (s *Server) Now() time.Time { return s.zk.Now() }
