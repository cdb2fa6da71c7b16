package zktest

import "time"

// WithManualClock makes the server's clock stand still: sessions expire, and empty containers go, only when
// [Server.Advance] says so, however slow the machine is. It is for clients on TCP, which
// cannot live in a synctest bubble; in a bubble time is in the test's hands anyway.
//
// Nothing changes for clients: their heartbeats go by their own clocks and are answered. Delays and
// latencies go by real time, too.
func WithManualClock() Option {
	return func(o *options) { o.cfg.ManualClock = true }
}

// Advance lets d pass by the server's clock, at once: what is due on the way (sessions, empty containers) happens in
// order, each at its instant, and has happened when Advance returns. The clock runs on from there, or with
// [WithManualClock] stands still.
//
// A client that is connected, and not behind [Server.Partition] or [Server.DropRequests], is taken
// to have sent its heartbeats all along: its session stays. The sessions of clients that are
// gone, or cannot be heard, expire. To let one expire although its client lives use [Server.Expire].
//
// While the server is frozen or stopped its clock moves and nothing happens; a thaw then makes up for it. Advance does not
// block; what waits for its commit is committed first. A negative d fails the test.
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

// SetTime sets the time of day that the server stamps nodes, requests and transactions with. It goes on from there,
// or with [WithManualClock] stands still. Sessions do not go by it, and it may go back: so it is
// with a real server whose clock is set.
func (s *Server) SetTime(t time.Time) { s.zk.SetTime(t) }

// Now returns the time of day as the server has it: that of the process, unless one of
// [WithManualClock], [Server.Advance] and [Server.SetTime] was used.
func (s *Server) Now() time.Time { return s.zk.Now() }
