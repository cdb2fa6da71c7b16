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

// Advance moves the server's clock by d, at once. Everything that is due in that time (sessions, empty containers) happens in
// order, each at its instant, before Advance returns. The clock runs on from there, or with
// [WithManualClock] stands still.
//
// A client that is connected, and not partitioned by [Server.Partition] or [Server.DropRequests], counts
// as having sent its heartbeats all the time: its session stays. The sessions of other clients
// expire. To expire the session of a live client use [Server.Expire].
//
// While the server is frozen or stopped its clock moves and nothing happens; a thaw then does what is due. Advance does not
// block; writes that wait for their commit are committed first. A negative d fails the test.
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
