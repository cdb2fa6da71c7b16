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
	return c.try(ctx, dropIn, c.attempt)
}

// attempt is Try. A lingering ticket is granted at once. Without a ticket the
// servers are asked, unless others of this process are asking them already.
func (c *Cohort) attempt(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	c.mu.Lock()
	l := c.relock(ctx, dropIn)
	if l != nil || c.state != idle {
		c.mu.Unlock()
		return l, c.unless(l)
	}
	c.becomeAcquiring(nil) // goroutines that come now wait behind this attempt
	c.mu.Unlock()
	return c.lookOnce(ctx, dropIn, c.q.Try)
}

// lookOnce gets a ticket with try, which is Queue.Try, and a lease of it. After a
// failure the goroutines that came meanwhile begin an acquisition of their own.
func (c *Cohort) lookOnce(ctx context.Context, dropIn bool, try getting) (*lease.Lease, error) {
	p, err := c.ticket(ctx, try, c.onLoss)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.becomeIdle()
		c.advance()
		return nil, err
	}
	l := c.grantNow(ctx, dropIn, &grant{ticket: p, since: time.Now()})
	c.advance() // if there is a lease, nothing
	return l, c.unless(l)
}

// grantNow makes a lease of g for a caller that is not on the list of those who wait. It returns nil if
// the ticket was lost, or if the session is closing; the state is idle then. mu is held, and nobody holds.
func (c *Cohort) grantNow(ctx context.Context, dropIn bool, g *grant) *lease.Lease {
	if !g.ticket.Over() { // see grantFirst; the ticket may end at any time, so there is one look only
		if l := c.newLease(ctx, c, g.ticket, g.passes, dropIn, time.Now()); l != nil {
			c.becomeHeld(g, l)
			return l
		}
		g.ticket.Leave(0) // the session is closing
	}
	c.becomeIdle()
	return nil
}

// unless is the error of a Try without a lease.
func (c *Cohort) unless(l *lease.Lease) error {
	if l != nil {
		return nil
	}
	return c.reason(errs.ErrNotAcquired)
}

// relock grants a ticket that lingers. It returns nil if there is none. mu is held.
func (c *Cohort) relock(ctx context.Context, dropIn bool) *lease.Lease {
	if c.state != lingering {
		return nil
	}
	return c.grantNow(ctx, dropIn, c.grant)
}
