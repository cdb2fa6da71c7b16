package zksync

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// try acquires the lease if nobody holds or waits for it, here or elsewhere, and
// returns ErrNotAcquired otherwise. It waits for the servers' answers only.
func (c *cohort) try(ctx context.Context, mirror bool) (*Lease, error) {
	return c.q.traced(ctx, func(ctx context.Context) (*Lease, error) {
		return c.q.admittedNow(func() (*Lease, error) { return c.attempt(ctx, mirror) })
	})
}

func (c *cohort) attempt(ctx context.Context, mirror bool) (*Lease, error) {
	if c.misuse != nil {
		return nil, c.misuse
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx)
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
	open := c.q.s.within(func() {
		ctx, cancel := c.q.s.bounded(ctx)
		defer cancel()
		p, failed := c.q.tryAcquire(ctx)
		if failed == nil {
			p.guard(c)
		}
		l, err = c.tried(w, p, failed)
	})
	if !open {
		return c.tried(w, nil, ErrClosed)
	}
	return l, err
}

// tried takes over what tryAcquire ended with.
func (c *cohort) tried(w *waiter, p *place, err error) (*Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join = nil
	defer c.advance()
	if err == nil && p.gone.Load() {
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

// bounded returns ctx such that it also ends, with ErrClosed, when the session closes.
func (s *Session) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// tryAcquire looks before it enters: a failed attempt is two reads and leaves no
// trace for others to queue behind. The Sync makes the answer that of the leader:
// a lock that was released before the call, by whomever, is found free.
func (q *queue) tryAcquire(ctx context.Context) (*place, error) {
	for pace := (node.Pace{}); ; {
		e, err := q.s.client.Epoch(ctx)
		if err != nil {
			return nil, q.failure(ctx, err)
		}
		p, err := q.tryIn(ctx, e)
		if err == nil {
			if err = p.depend(ctx); err != nil {
				p.leave(cleanupGrace)
			}
		}
		switch {
		case err == nil:
			return p, nil
		case errors.Is(err, errGone), errors.Is(err, zkconn.ErrOver):
		case errors.Is(err, errList), zkconn.Unknown(err):
			// An answer that settles nothing. Only ctx ends that, if the server will not.
		case errors.Is(err, ErrNotAcquired), errors.Is(err, errTooBig):
			return nil, ErrNotAcquired
		default:
			return nil, q.failure(ctx, err)
		}
		if err := pace.Rest(ctx, e); ctx.Err() != nil {
			return nil, q.failure(ctx, err)
		}
	}
}

func (q *queue) tryIn(ctx context.Context, e *zkconn.Epoch) (*place, error) {
	if q.terms != nil {
		if err := q.terms.learn(ctx, e, q.acl); err != nil {
			return nil, err
		}
	}
	free, err := q.free(ctx, e)
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, ErrNotAcquired
	}
	p, alone, err := q.enter(ctx, e, nil)
	if err != nil || alone {
		return p, err
	}
	ahead, err := p.ahead(ctx)
	if err == nil && len(q.grant(ahead, p.self)) > 0 {
		err = ErrNotAcquired // somebody was quicker
	}
	if err != nil {
		p.leave(cleanupGrace)
		return nil, err
	}
	return p, nil
}

// free reports whether an entry at the tail would be granted at once.
func (q *queue) free(ctx context.Context, e *zkconn.Epoch) (bool, error) {
	if err := e.Sync(ctx, q.dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	entries, err := q.list(ctx, e)
	if err != nil {
		return false, err
	}
	return len(q.grant(entries, entry{kind: q.kind, weight: q.weight})) == 0, nil
}
