package zksync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// cohort is the goroutines of this process that share one object. It separates
// who in this process holds from the process's place in the queue: a grant costs
// two writes on a majority of the servers, a local hand-over nanoseconds.
//
// At any time the object has at most one place in the queue. One goroutine, the
// join, gets it on behalf of all that wait. The idea of passing a global lock on
// locally within a bound is that of cohort locks (Dice, Marathe, Shavit: Lock
// Cohorting, 2012).
type cohort struct {
	q      *queue
	set    settings
	misuse error // of the constructor, reported by every call

	mu      sync.Mutex
	hold    *Lease // who in this process holds; a lost mirror hold stays until its Unlock
	place   *place // granted and not given up; nil without one
	granted time.Time
	passes  uint32 // hand-overs since then
	waiters []*waiter
	join    *join  // the acquisition under way
	idle    *idle  // the place is kept although nobody here holds it
	quiet   *quiet // what is known of others in the queue, for lingering
}

// waiter is one goroutine in acquire.
type waiter struct {
	ctx    context.Context
	mirror bool
	ready  chan struct{} // closed once lease or err is set
	lease  *Lease
	err    error
}

// join is one acquisition.
type join struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended and cleaned up
}

// errNobody cancels a join that nobody waits for any more.
var errNobody = errors.New("zksync: nobody waits any more")

// acquire waits for the lease: through disconnects and lost sessions, until ctx
// ends, the session is closed, or trying again would not mend it.
func (c *cohort) acquire(ctx context.Context, mirror bool) (*Lease, error) {
	if c.misuse != nil {
		return nil, c.misuse
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx) // before anything is created
	}
	w := &waiter{ctx: ctx, mirror: mirror, ready: make(chan struct{})}
	c.mu.Lock()
	c.waiters = append(c.waiters, w)
	run := func() {}
	switch {
	case !c.free():
		c.advance()
	case ctx.Done() == nil:
		// Nobody is ahead here and this goroutine has nothing else to look at.
		run = c.newJoin(nil, nil)
	default:
		run = c.firstStep(ctx, w)
	}
	c.mu.Unlock()
	if !c.q.s.within(run) {
		c.mu.Lock()
		c.join = nil
		c.fail(ErrClosed)
		c.mu.Unlock()
	}
	select {
	case <-w.ready:
		return w.lease, w.err
	case <-ctx.Done():
		return nil, c.withdraw(w, contextError(ctx))
	case <-c.q.s.ctx.Done():
		return nil, c.withdraw(w, ErrClosed)
	}
}

// free reports whether nobody of this process holds, has a place, or is getting
// one. mu is held.
func (c *cohort) free() bool {
	return c.hold == nil && c.place == nil && c.join == nil && len(c.waiters) == 1
}

// firstStep makes the first step of a join, which without contention is the last:
// it enters the queue, in the goroutine of the only waiter and under his context.
// The rest, if there is any, is a join like others, on which waiters to come may
// rely. mu is held.
func (c *cohort) firstStep(ctx context.Context, w *waiter) (run func()) {
	// Whoever comes meanwhile waits behind this one; giving up must not end it.
	j := &join{cancel: func(error) {}, done: make(chan struct{})}
	c.join = j
	return func() {
		defer close(j.done)
		ctx, cancel := c.q.s.bounded(ctx)
		defer cancel()
		p, alone, err := c.q.anew(ctx, nil)
		if err == nil && alone {
			c.guard(p)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.join = nil
		switch {
		case err == nil && alone && !p.gone.Load():
			c.take(p)
		case err == nil && !alone:
			c.startJoin(nil, p)
		case c.q.s.ctx.Err() != nil:
			c.fail(ErrClosed)
		case ctx.Err() != nil:
			c.remove(w)
		case err != nil && !errors.Is(err, zkconn.ErrOver) && !errors.Is(err, errGone):
			c.fail(c.q.failure(ctx, err))
		}
		c.advance()
	}
}

// remove takes w off the waiters. mu is held.
func (c *cohort) remove(w *waiter) {
	if i := slices.Index(c.waiters, w); i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	}
}

// withdraw takes a waiter out. If it was granted in the meantime, it pretends not
// to have noticed and passes the grant on.
func (c *cohort) withdraw(w *waiter, err error) error {
	c.mu.Lock()
	c.remove(w)
	var done <-chan struct{}
	if len(c.waiters) == 0 && c.join != nil {
		c.join.cancel(errNobody)
		done = c.join.done
	}
	c.mu.Unlock()
	select {
	case <-w.ready:
		if w.lease != nil && w.lease.finishAs(ErrReleased) == ErrReleased {
			c.release(w.lease, cleanupGrace) // the caller's time is up
		} else if w.lease != nil {
			c.unlockLost(w.lease)
		}
		return err
	default:
	}
	if done != nil && !errors.Is(err, ErrClosed) {
		// With a healthy connection the node is gone when the caller returns.
		t := time.NewTimer(cleanupGrace)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
		}
	}
	return err
}

// advance does whatever can be done now: grant to the next waiter, hand the place
// over, or begin to get one. mu is held.
func (c *cohort) advance() {
	for c.hold == nil && len(c.waiters) > 0 {
		if c.join != nil {
			return // its end comes here again
		}
		if c.place != nil && c.place.gone.Load() {
			c.dropLost() // lost is on its way here
		}
		if c.place == nil {
			c.startJoin(nil, nil)
			return
		}
		w := c.waiters[0]
		c.waiters = c.waiters[1:]
		c.stopIdle()
		c.grantTo(w)
	}
}

// grantTo gives the place to w. mu is held; there is a place and no holder.
func (c *cohort) grantTo(w *waiter) {
	l := newLease(w.ctx, c, c.place, c.passes, w.mirror)
	if !c.q.s.remember(l) {
		w.err = ErrClosed
		close(w.ready)
		return
	}
	if c.set.maxHold > 0 {
		l.mu.Lock() // its own timer may look at it at once
		l.bound = time.AfterFunc(c.set.maxHold, func() {
			if l.finish(ErrMaxHold) {
				c.release(l, 0)
			}
		})
		l.mu.Unlock()
	}
	c.hold = l
	w.lease = l
	close(w.ready)
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
		p, err := c.obtain(ctx, old, entered)
		if unwanted := c.joined(j, p, err); unwanted != nil {
			unwanted.leave(cleanupGrace)
		}
	}
}

// obtain acquires a place and has it watched for the loss of its session.
func (c *cohort) obtain(ctx context.Context, old, entered *place) (*place, error) {
	for {
		p, err := c.q.acquire(ctx, old, entered)
		if err != nil {
			return nil, err
		}
		old, entered = nil, nil
		c.guard(p)
		if !p.gone.Load() {
			return p, nil
		}
	}
}

// guard has lost called when the session of p is over; at once if it is already.
func (c *cohort) guard(p *place) {
	p.hook.Store(p.e.OnLost(func(error) { c.lost(p) }))
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

// take puts a granted place to use. mu is held.
func (c *cohort) take(p *place) {
	c.place, c.passes, c.granted, c.quiet = p, 0, time.Now(), nil
}

// fail ends all waits with err. mu is held.
func (c *cohort) fail(err error) {
	for _, w := range c.waiters {
		w.err = err
		close(w.ready)
	}
	c.waiters = nil
}

// release ends the hold of l, which has been finished already: its holder is told
// before anybody else can be granted.
//
// Where that takes a request, it waits for the answer no longer than grace.
func (c *cohort) release(l *Lease, grace time.Duration) {
	c.mu.Lock()
	if c.place != l.p {
		if c.hold == l && !(l.mirror && l.Err() != ErrReleased) {
			c.hold = nil
			c.advance()
		}
		c.mu.Unlock()
		return
	}
	if c.hold != l {
		c.mu.Unlock()
		return
	}
	stays := l.mirror && l.Err() != ErrReleased // see hold: a mirror hold that was cut short
	if !stays {
		c.hold = nil
	}
	switch {
	case stays:
		c.giveUp()
		c.mu.Unlock()
	case len(c.waiters) > 0 && c.mayPass(l):
		c.passes++ // the next token must be greater
		c.advance()
		c.mu.Unlock()
	case len(c.waiters) > 0:
		old := c.place
		c.place = nil
		c.startJoin(old, nil)
		c.mu.Unlock()
	case c.linger():
		c.mu.Unlock()
	default:
		p := c.place
		c.place = nil
		c.mu.Unlock()
		p.leave(grace)
	}
}

// unlockWait is how long an Unlock waits for the servers' confirmation.
const unlockWait = time.Second

// mayPass reports whether the place may go to the next waiter of this process. A
// guarded transaction that is under way must find the node gone, not a successor's
// hold of the same node. mu is held.
func (c *cohort) mayPass(l *Lease) bool {
	l.mu.Lock()
	guards := l.guards
	l.mu.Unlock()
	return guards == 0 && int(c.passes) < c.set.handover &&
		time.Since(c.granted) < c.set.handoverIn && c.place.e.Valid() && !c.place.gone.Load()
}

// giveUp leaves the place in the background. mu is held.
func (c *cohort) giveUp() {
	p := c.place
	c.place = nil
	c.stopIdle()
	p.leave(0)
}

// lost is called when the session of p is over, or its node was removed.
func (c *cohort) lost(p *place) {
	p.gone.Store(true)
	c.mu.Lock()
	if c.place != p {
		c.mu.Unlock()
		return
	}
	l := c.hold
	c.mu.Unlock()
	// The holder first: nothing below may keep it from being told in time.
	if l != nil && l.p == p {
		l.finish(ErrLost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place == p {
		c.dropLost()
	}
	if c.hold == l && l != nil && l.p == p && !l.mirror {
		c.hold = nil
	}
	c.advance()
}

// dropLost forgets a place that was lost. mu is held.
func (c *cohort) dropLost() {
	if p := c.place; !p.e.Ordered() {
		p.leave(0) // an adopted connection's session may live on, and the node with it
	}
	c.place = nil
	c.stopIdle()
}

// unlockLost is the Unlock of a lease that was lost before. A mirror hold keeps
// the other goroutines of this object out until then: its critical section runs
// on, whatever the servers say, and they share its memory.
func (c *cohort) unlockLost(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l {
		c.hold = nil
		if c.place == l.p && c.place != nil {
			c.giveUp()
		}
		c.advance()
	}
}

// watchOwn watches the node of p until ctx ends: its removal by somebody else is
// the loss of the lease. After a disconnect it looks again.
func (c *cohort) watchOwn(ctx context.Context, p *place) {
	for {
		if p.e.Await(ctx) != nil {
			return
		}
		what := make(chan zkconn.News, 1)
		w, err := p.e.Watch(ctx, p.node, func(n zkconn.News) { what <- n })
		switch {
		case errors.Is(err, zk.ErrNoNode):
			c.vanished(p)
			return
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			if sleep(ctx, p.e, lookAgain) != nil {
				return
			}
			continue
		case err != nil:
			return // ctx or the epoch ended, or we may not even look
		}
		select {
		case n := <-what:
			if n == zkconn.Gone {
				c.vanished(p)
				return
			}
		case <-ctx.Done():
			w.Stop()
			return
		case <-p.e.Over():
			return
		}
	}
}

// vanished handles the removal of the own node by somebody else. A node that we
// removed ourselves has been given up before.
func (c *cohort) vanished(p *place) {
	if p.gone.Load() {
		return
	}
	c.q.s.logger.Warn("own node was deleted by somebody else", "node", c.q.s.local(p.node))
	if h := p.hook.Load(); h != nil {
		h.Stop()
	}
	c.lost(p)
}

// current is the lease of whoever in this process holds now, nil without one.
func (c *cohort) current() *Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hold
}

// newCohort checks what a constructor was given. An error waits for the first call.
func newCohort(s *Session, op, path string, kind Kind, weight int64, grant policy, opts []Option) *cohort {
	c := &cohort{}
	fail := func(err error) *cohort {
		c.misuse = err
		return c
	}
	if s == nil {
		c.q = &queue{s: newSession(settings{}, nil, ""), dir: path, kind: kind}
		return fail(fmt.Errorf("%w: a nil Session; open one with Connect", ErrMisuse))
	}
	set, err := lockSettings(s.set, opts)
	c.set = set
	c.q = &queue{
		s: s, dir: s.full(path), kind: kind, weight: weight, grant: grant,
		acl: set.acl, name: set.name,
	}
	if len(c.q.acl) == 0 {
		c.q.acl = zk.WorldACL(zk.PermAll)
	}
	if err != nil {
		return fail(err)
	}
	return fail(validatePath(path))
}
