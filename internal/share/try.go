package share

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
)

// Try acquires the lease if nobody holds it or waits for it, here or elsewhere.
// Otherwise it returns ErrNotAcquired. It waits only for answers of the servers.
func (c *Cohort) Try(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return c.side.try(ctx, dropIn, c.ahead, c.attempt)
}

// attempt is Try. A lingering ticket is granted at once. Without a ticket the
// servers are asked, unless others of this process are asking them already.
func (c *Cohort) attempt(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	l := lease.New(asked(ctx), c, c.side.at, dropIn)
	c.mu.Lock()
	if granted := c.relock(l); granted || c.state != idle {
		c.mu.Unlock()
		if granted {
			tracingOf(ctx).Passed(nil)
		}
		return c.side.tried(l, granted)
	}
	c.become(acquiring, nil, nil, nil) // goroutines that come now wait behind this attempt
	c.mu.Unlock()
	return c.lookOnce(ctx, l, c.side.q.Try)
}

// lookOnce gets a ticket with try, which is Queue.Try, for l. After a
// failure the goroutines that came meanwhile begin an acquisition of their own.
func (c *Cohort) lookOnce(ctx context.Context, l *lease.Lease, try getting) (*lease.Lease, error) {
	p, err := c.side.ticket(ctx, try, c.ticketLost)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.become(idle, nil, nil, nil)
		c.advance(nil)
		return nil, err
	}
	granted := c.grantNow(l, &grant{c: c, ticket: p, since: time.Now()})
	c.advance(nil) // if it was granted, nothing
	return c.side.tried(l, granted)
}

// grantNow grants g to l, whose goroutine is not on the list of those who wait. It reports false if
// the ticket was lost, or if the session is closing; the state is idle then. mu is held, and nobody holds.
func (c *Cohort) grantNow(l *lease.Lease, g *grant) bool {
	if !g.ticket.Over() { // see grantFirst; the ticket may end at any time, so there is one look only
		if c.grantTo(l, g, time.Now()) {
			return true
		}
		g.ticket.Leave(0) // the session is closing
	}
	c.become(idle, nil, nil, nil)
	return false
}

// tried is the result of a Try.
func (s *side) tried(l *lease.Lease, granted bool) (*lease.Lease, error) {
	if granted {
		return l, nil
	}
	return nil, s.reason(errs.ErrNotAcquired)
}

// relock grants a ticket that lingers. It reports false if there is none that can be held. mu is held.
func (c *Cohort) relock(l *lease.Lease) bool {
	if c.state != lingering {
		return false
	}
	// After a pause of this process the proof may have run out although no timer has fired yet.
	if g := c.grant; !g.ticket.Over() && (g.unsettled() || !g.ticket.Epoch.Valid()) {
		g.endLingering()
		return false
	}
	return c.grantNow(l, c.grant)
}
