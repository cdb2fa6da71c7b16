package zkconn

import "time"

// standing is what tells how long the session still counts as alive.
type standing struct {
	span   time.Duration // how long an answer proves the session alive; whoever depends on leader proof needs that, too
	held   time.Duration // how long after it the session ends for those who depend on proof
	term   time.Duration // how long leader proof lasts, from proved on
	lag    time.Duration // half a tick or more: see above
	heard  time.Time     // send time of the newest acknowledged request
	proved time.Time     // the leader is known to have counted the session as alive then, or later
	wants  int           // how many want proof (require): heartbeats fetch it for them
	since  time.Time     // when the first of them began, or the last one who depended ended
	needs  int           // how many depend on proof (depend); each of them is one of wants, too
	over   bool          // final: a late reply cannot revive a lost lease
	timer  *time.Timer   // runs check; nil before the first connection
}

// unlock unlocks mu, after it has shown to valid what has changed.
func (c *leaseClock) unlock() {
	if shown := c.shown.Load(); shown == nil || *shown != c.standing {
		s := c.standing
		c.shown.Store(&s)
	}
	c.mu.Unlock()
}

// valid reports whether the session can be proved alive at this instant. Every hand-over asks that, so it
// takes no lock: it looks at the clock, and at what was true when a change of it ended last.
func (c *leaseClock) valid() bool { return c.validAt(time.Now()) }

// validAt is valid for a caller that has just looked at the clock.
func (c *leaseClock) validAt(now time.Time) bool {
	s := c.shown.Load()
	return s != nil && !s.over && s.timer != nil && s.left(now) > 0
}

// expires is until when the session is valid if no more answers come; zero if it is not.
func (c *leaseClock) expires(now time.Time) time.Time {
	if s := c.shown.Load(); s != nil && !s.over && s.timer != nil {
		if left := s.left(now); left > 0 {
			return now.Add(left)
		}
	}
	return time.Time{}
}

// lastHeard is the send time of the newest request that was answered.
func (c *leaseClock) lastHeard() time.Time {
	if s := c.shown.Load(); s != nil {
		return s.heard
	}
	return time.Time{}
}
