package share

import (
	"time"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// linger keeps the ticket after c.hold, if WithLinger was given and no other
// contender is known to queue. It reports whether it keeps the ticket. mu is held.
func (c *Cohort) linger(now time.Time) bool {
	g := c.grant
	e := g.ticket.Epoch
	if c.at.Settings.Linger <= 0 || g.unsettled() || g.contended || !e.ValidAt(now) {
		return false
	}
	if !g.watched {
		if !c.at.Session.Spawn(func() { c.watchContention(g) }) {
			return false
		}
		// Whoever asks writes to a node that is there already, if a holder has listened: no child watch tells of that.
		g.ticket.Asked.Heed(func() { c.at.Session.Spawn(func() { c.giveUp(g) }) })
	}
	g.watched = true
	g.passes++ // the next hold is another grant, with a token of its own
	g.linger = now.Add(c.at.Settings.Linger)
	switch {
	case g.timer == nil:
		g.timer = time.AfterFunc(c.at.Settings.Linger, func() { c.lingered(g) })
	case !g.ticks:
		g.timer.Reset(c.at.Settings.Linger)
	}
	g.ticks = true
	c.becomeLingering()
	return true
}

// lingered runs when the timer of g fires. The timer is not stopped by those who lock again,
// nor moved by those who unlock, so lingered looks how long the lingering still lasts.
func (c *Cohort) lingered(g *grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.ticks = false
	if c.state != lingering || c.grant != g {
		return
	}
	if left := time.Until(g.linger); left > 0 {
		g.timer.Reset(left)
		g.ticks = true
		return
	}
	c.endLingering(g)
}

// giveUp is endLingering for a caller without mu.
func (c *Cohort) giveUp(g *grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLingering(g)
}

// endLingering gives g up if it is lingering. mu is held.
func (c *Cohort) endLingering(g *grant) {
	if c.state == lingering && c.grant == g {
		c.becomeIdle()
		g.ticket.Leave(0)
	}
}

// watchContention watches for other contenders. This is the only child watch
// that the package sets on a directory that others share. Only a ticket that
// lingers has it: it would wake others at every change of the directory.
func (c *Cohort) watchContention(g *grant) {
	contended := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		g.contended = true
		c.endLingering(g)
	}
	_, listing, err := g.ticket.Epoch.WatchChildren(c.at.Session.Context(), c.q.Dir, func(zkconn.Event) {
		// This runs in the goroutine that reads the connection. It must
		// not wait for the requests that giving the ticket up may need.
		c.at.Session.Spawn(contended)
	})
	others := err != nil // without a watch nobody would tell us of others, so they are assumed
	for _, n := range listing.Names {
		en, ok := queue.ParseEntry(n)
		others = others || ok && en.Name != g.ticket.Entry.Name
	}
	if others {
		contended()
	}
}
