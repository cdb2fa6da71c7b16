package share

import "time"

// linger keeps the ticket after the hold, if WithLinger was given and no other
// contender is known to queue. It reports whether it keeps the ticket. mu is held: so either this sees that the session
// is being closed, or Close sees that the ticket lingers.
func (g *grant) linger(now time.Time) bool {
	c := g.c
	e := g.ticket.Epoch
	if c.side.at.Settings.Linger <= 0 || c.side.at.Session.Closing() || g.unsettled() || g.company == others || !e.ValidAt(now) {
		return false
	}
	if g.known(now) == unsure && (g.asked.IsZero() || g.company == alone) { // else the answer is on its way
		g.asked = now
		if !c.side.at.Session.Spawn(func() { g.look(c.side.at.Session.Context()) }) {
			return false
		}
	}
	if !g.heeds {
		// Whoever asks writes to a node that is there already, if a holder has listened: no child watch tells of that.
		g.ticket.Asked.Heed(func() { c.side.at.Session.Spawn(func() { g.giveUp() }) })
	}
	g.heeds = true
	g.passes++ // the next hold is another grant, with a token of its own
	g.until = now.Add(c.side.at.Settings.Linger)
	switch {
	case g.timer == nil:
		g.timer = time.AfterFunc(c.side.at.Settings.Linger, func() { g.lingered() })
	case !g.ticks:
		g.timer.Reset(c.side.at.Settings.Linger)
	}
	g.ticks = true
	c.become(lingering, nil, c.grant, nil)
	return true
}

// lingered runs when the timer of g fires. The timer is not stopped by those who lock again,
// nor moved by those who unlock, so lingered looks how long the lingering still lasts.
func (g *grant) lingered() {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	g.ticks = false
	if c.state != lingering || c.grant != g {
		return
	}
	if left := time.Until(g.until); left > 0 {
		g.timer.Reset(left)
		g.ticks = true
		return
	}
	g.endLingering()
}

// giveUp is endLingering for a caller without mu.
func (g *grant) giveUp() {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	g.endLingering()
}

// endLingering gives g up if it is lingering. mu is held.
func (g *grant) endLingering() {
	c := g.c
	if c.state == lingering && c.grant == g {
		c.become(idle, nil, nil, nil)
		g.ticket.Leave(0)
	}
}
