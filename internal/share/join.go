package share

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// join is one acquisition.
type join struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended and cleaned up
}

// errNobody cancels a join that has no waiters.
var errNobody = errors.New("zksync: nobody waits any more")

// inPerson makes a join in the goroutine of the only waiter, with its context: no other
// goroutine has to be woken. If it gives up after others have
// come, they take over its place in the queue. mu is held.
func (c *Cohort) inPerson(ctx context.Context, w *waiter) (run func()) {
	// Whoever comes meanwhile waits behind this one; giving up must not end it.
	j := &join{cancel: func(error) {}, done: make(chan struct{})}
	c.join = j
	return func() {
		defer close(j.done)
		ctx, cancel := c.at.Session.Bounded(ctx)
		defer cancel()
		_, p, alone, err := c.q.Enter(ctx, nil)
		if err == nil {
			err = p.Await(ctx, alone)
		}
		if err == nil {
			p.OnLoss(c.lost)
		}
		if useless := c.cameBack(ctx, w, p, err); useless != nil {
			useless.Leave(node.Grace)
		}
	}
}

// cameBack takes over the outcome of w's own attempt. It returns a place that is no longer
// of use.
func (c *Cohort) cameBack(ctx context.Context, w *waiter, p *queue.Ticket, err error) (useless *queue.Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join = nil
	over := errors.Is(err, zkconn.ErrOver) || errors.Is(err, queue.ErrGone)
	switch {
	case err == nil && !p.Over():
		c.take(p)
	case err == nil:
		// Lost between the last look and here; lost() did not find it in place yet.
	case c.at.Session.Closing():
		c.fail(errs.ErrClosed)
		useless = p
	case ctx.Err() != nil:
		c.remove(w)
		if p != nil && len(c.waiters) > 0 && !over {
			c.startJoin(nil, p)
			return nil
		}
		useless = p
	case !over:
		c.fail(node.Reason(ctx, err))
		useless = p
	default:
		c.at.Session.Logger().Warn("lost the place in a queue, queueing anew", "path", c.at.Path, "cause", err)
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
func (c *Cohort) startJoin(old, entered *queue.Ticket) {
	run := c.newJoin(old, entered)
	if !c.at.Session.Spawn(run) {
		for _, p := range []*queue.Ticket{old, entered} {
			if p != nil {
				p.Leave(0)
			}
		}
		c.join = nil
		c.fail(errs.ErrClosed)
	}
}

// newJoin makes the acquisition that run carries out. mu is held.
func (c *Cohort) newJoin(old, entered *queue.Ticket) (run func()) {
	ctx, cancel := context.WithCancelCause(c.at.Session.Context())
	j := &join{cancel: cancel, done: make(chan struct{})}
	c.join = j
	return func() {
		defer cancel(nil)
		defer close(j.done)
		p, err := c.q.ObtainFrom(ctx, c.lost, old, entered)
		if unwanted := c.joined(j, p, err); unwanted != nil {
			unwanted.Leave(node.Grace)
		}
	}
}

// joined takes over the outcome of a join. It returns a place that has no
// waiters.
func (c *Cohort) joined(j *join, p *queue.Ticket, err error) (unwanted *queue.Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join = nil
	switch {
	case err == nil && p.Over():
		// Lost between the last look and here; lost() did not find it in place yet.
	case err == nil:
		c.take(p)
	case errors.Is(err, errNobody):
		// Later waiters begin anew.
	case c.at.Session.Closing():
		c.fail(errs.ErrClosed)
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
	if done == nil || errors.Is(err, errs.ErrClosed) {
		return
	}
	t := time.NewTimer(node.Grace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
