package share

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// Try acquires the lease if nobody holds or waits for it, here or elsewhere, and
// returns ErrNotAcquired otherwise. It waits for the servers' answers only.
func (c *Cohort) Try(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return lease.Traced(ctx, c.at, c.q.Kind, func(ctx context.Context) (*lease.Lease, error) {
		return c.kept.admittedNow(c.q.Kind, func() (*lease.Lease, error) { return c.attempt(ctx, dropIn) })
	})
}

func (c *Cohort) attempt(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	if c.at.Misuse() != nil {
		return nil, c.at.Misuse()
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	w := &waiter{ctx: ctx, dropIn: dropIn, ready: make(chan struct{})}
	c.mu.Lock()
	if c.hold != nil || c.join != nil || len(c.waiters) > 0 {
		c.mu.Unlock()
		return nil, errs.ErrNotAcquired
	}
	if c.hasPlace() {
		c.stopIdle()
		c.grantTo(w)
		c.mu.Unlock()
		return w.lease, w.err
	}
	// Whoever comes now waits behind this attempt; giving up must not end it.
	j := &join{cancel: func(error) {}, done: make(chan struct{})}
	c.join = j
	c.mu.Unlock()
	defer close(j.done)
	var l *lease.Lease
	var err error
	open := c.at.Session.Within(func() {
		ctx, cancel := c.at.Session.Bounded(ctx)
		defer cancel()
		p, failed := c.q.Try(ctx, c.lost)
		l, err = c.tried(w, p, failed)
	})
	if !open {
		return c.tried(w, nil, errs.ErrClosed)
	}
	return l, err
}

// tried takes over what Queue.Try ended with.
func (c *Cohort) tried(w *waiter, p *queue.Ticket, err error) (*lease.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join = nil
	defer c.advance()
	if err == nil && p.Over() {
		err = errs.ErrNotAcquired // the session went with it at that very moment
	}
	if err != nil {
		return nil, err
	}
	c.take(p)
	c.grantTo(w)
	if w.err != nil {
		c.giveUp()
	}
	return w.lease, w.err
}
