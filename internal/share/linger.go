package share

import (
	"time"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// idle is a place that is kept without a holder: see WithLinger.
type idle struct{ timer *time.Timer }

// quiet is the state of a child watch: without an event, no other contender
// has queued. It outlives single idle times,
// so that locking and unlocking in turn costs no request.
type quiet struct{ crowded bool }

// linger keeps the place after l, with WithLinger and if no other contender is known to queue.
// It reports whether the place is kept. mu is held.
func (c *Cohort) linger(l *lease.Lease) bool {
	if c.at.Settings.Linger <= 0 || c.unsettled(l) || c.quiet != nil && c.quiet.crowded || !c.place.Epoch.Valid() || !c.place.Epoch.Ordered() {
		return false
	}
	p := c.place
	c.passes++ // whoever takes it next is another grant
	i := &idle{}
	i.timer = time.AfterFunc(c.at.Settings.Linger, func() { c.endIdle(p, i) })
	c.idle = i
	if c.quiet == nil {
		q := &quiet{}
		c.quiet = q
		if !c.at.Session.Spawn(func() { c.listen(p, q) }) {
			i.timer.Stop()
			c.idle = nil
			return false
		}
	}
	return true
}

// listen watches for other contenders. This is the only child watch that the package
// sets on a directory that others share, and only the idle holder sets it.
func (c *Cohort) listen(p *queue.Ticket, q *quiet) {
	_, names, err := p.Epoch.WatchChildren(c.at.Session.Context(), c.q.Dir, func(zkconn.Event) {
		// In the wire's goroutine, which must not wait for the requests that giving
		// the place up may need.
		c.at.Session.Spawn(func() { c.disturbed(p, q) })
	})
	others := 0
	for _, n := range names {
		if en, ok := queue.ParseEntry(n); ok && en.Name != p.Entry.Name {
			others++
		}
	}
	if err != nil || others > 0 {
		c.disturbed(p, q)
	}
}

// disturbed records that another contender queues, or that the watch is lost.
func (c *Cohort) disturbed(p *queue.Ticket, q *quiet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q.crowded = true
	if c.place == p && c.idle != nil {
		c.giveUp()
	}
}

func (c *Cohort) endIdle(p *queue.Ticket, i *idle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place == p && c.idle == i {
		c.giveUp()
	}
}

// stopIdle ends an idle time. mu is held.
func (c *Cohort) stopIdle() {
	if c.idle != nil {
		c.idle.timer.Stop()
		c.idle = nil
	}
}
