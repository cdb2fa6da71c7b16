package zksync

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// try acquires the lease if nobody holds or waits for it, here or elsewhere, and
// returns ErrNotAcquired otherwise. It waits for the servers' answers only.
func (c *cohort) try(ctx context.Context, mirror bool) (*Lease, error) {
	return c.traced(ctx, c.q.Kind, func(ctx context.Context) (*Lease, error) {
		return c.kept.admittedNow(c.q.Kind, func() (*Lease, error) { return c.attempt(ctx, mirror) })
	})
}

func (c *cohort) attempt(ctx context.Context, mirror bool) (*Lease, error) {
	if c.misuse != nil {
		return nil, c.misuse
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	w := &waiter{ctx: ctx, mirror: mirror, ready: make(chan struct{})}
	c.mu.Lock()
	if c.hold != nil || c.join != nil || len(c.waiters) > 0 {
		c.mu.Unlock()
		return nil, ErrNotAcquired
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
	var l *Lease
	var err error
	open := c.s.within(func() {
		ctx, cancel := c.s.bounded(ctx)
		defer cancel()
		p, failed := c.q.Try(ctx)
		if failed == nil {
			p.OnLoss(c.lost)
		}
		l, err = c.tried(w, p, failed)
	})
	if !open {
		return c.tried(w, nil, ErrClosed)
	}
	return l, err
}

// tried takes over what tryAcquire ended with.
func (c *cohort) tried(w *waiter, p *queue.Ticket, err error) (*Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join = nil
	defer c.advance()
	if err == nil && p.Over() {
		err = ErrNotAcquired // the session went with it at that very moment
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
