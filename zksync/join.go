package zksync

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// join is one acquisition.
type join struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended and cleaned up
}

// errNobody cancels a join that nobody waits for any more.
var errNobody = errors.New("zksync: nobody waits any more")

// inPerson makes a join in the goroutine of the only waiter and under his context: without
// others in this process nobody has to be woken but him. If he gives up while others have
// come, they take over his place in the queue. mu is held.
func (c *cohort) inPerson(ctx context.Context, w *waiter) (run func()) {
	// Whoever comes meanwhile waits behind this one; giving up must not end it.
	j := &join{cancel: func(error) {}, done: make(chan struct{})}
	c.join = j
	return func() {
		defer close(j.done)
		ctx, cancel := c.q.s.bounded(ctx)
		defer cancel()
		_, p, alone, err := c.q.anew(ctx, nil)
		if err == nil {
			err = p.await(ctx, alone)
		}
		if err == nil {
			p.guard(c)
		}
		if useless := c.cameBack(ctx, w, p, err); useless != nil {
			useless.leave(cleanupGrace)
		}
	}
}

// cameBack takes over what w's own attempt ended with. It returns a place that is of no
// use any more.
func (c *cohort) cameBack(ctx context.Context, w *waiter, p *place, err error) (useless *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join = nil
	over := errors.Is(err, zkconn.ErrOver) || errors.Is(err, errGone)
	switch {
	case err == nil && !p.gone.Load():
		c.take(p)
	case err == nil:
		// Lost between the last look and here; lost() did not find it in place yet.
	case c.q.s.ctx.Err() != nil:
		c.fail(ErrClosed)
		useless = p
	case ctx.Err() != nil:
		c.remove(w)
		if p != nil && len(c.waiters) > 0 && !over {
			c.startJoin(nil, p)
			return nil
		}
		useless = p
	case !over:
		c.fail(c.q.failure(ctx, err))
		useless = p
	default:
		c.q.s.logger.Warn("lost the place in a queue, queueing anew", "path", c.q.path(), "cause", err)
		useless = p
	}
	c.advance()
	if c.hold == nil && c.place != nil && c.idle == nil { // the session is closing
		useless, c.place = c.place, nil
	}
	return useless
}

// startJoin begins to get a place: by giving up old in the same request, or from one
// that has been entered but not granted. mu is held.
func (c *cohort) startJoin(old, entered *place) {
	run := c.newJoin(old, entered)
	if !c.q.s.spawn(run) {
		for _, p := range []*place{old, entered} {
			if p != nil {
				p.leave(0)
			}
		}
		c.join = nil
		c.fail(ErrClosed)
	}
}

// newJoin makes the acquisition that run carries out. mu is held.
func (c *cohort) newJoin(old, entered *place) (run func()) {
	ctx, cancel := context.WithCancelCause(c.q.s.ctx)
	j := &join{cancel: cancel, done: make(chan struct{})}
	c.join = j
	return func() {
		defer cancel(nil)
		defer close(j.done)
		p, err := c.q.obtain(ctx, c, old, entered)
		if unwanted := c.joined(j, p, err); unwanted != nil {
			unwanted.leave(cleanupGrace)
		}
	}
}

// obtain acquires a place and has b told of the loss of its session.
func (q *queue) obtain(ctx context.Context, b books, old, entered *place) (*place, error) {
	for {
		p, err := q.acquire(ctx, old, entered)
		if err != nil {
			return nil, err
		}
		old, entered = nil, nil
		p.guard(b)
		if !p.gone.Load() {
			return p, nil
		}
	}
}

// joined takes over what a join ended with. It returns a place that nobody wants
// any more.
func (c *cohort) joined(j *join, p *place, err error) (unwanted *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join = nil
	switch {
	case err == nil && p.gone.Load():
		// Lost between the last look and here; lost() did not find it in place yet.
	case err == nil:
		c.take(p)
	case errors.Is(err, errNobody):
		// Whoever came since begins anew.
	case c.q.s.ctx.Err() != nil:
		c.fail(ErrClosed)
	default:
		c.fail(err)
	}
	c.advance()
	if c.hold == nil && c.place != nil && c.idle == nil {
		unwanted, c.place = c.place, nil
	}
	return unwanted
}

// awaitCleanup waits for a join that was cancelled, done, if there is one: with a healthy
// connection its node is gone when the caller, who gave up with err, returns.
func awaitCleanup(done <-chan struct{}, err error) {
	if done == nil || errors.Is(err, ErrClosed) {
		return
	}
	t := time.NewTimer(cleanupGrace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
