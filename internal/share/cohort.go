package share

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Cohort is the goroutines of this process that share one object. It separates
// the holder in this process from the process's place in the queue: a grant costs
// two writes on a majority of the servers, a local hand-over costs nanoseconds.
//
// At any time the object has at most one place in the queue. One goroutine, the
// join, gets it for all that wait. The idea to hand a global lock over
// locally within a bound comes from cohort locks (Dice, Marathe, Shavit: Lock
// Cohorting, 2012).
type Cohort struct {
	at   *session.Access
	q    *queue.Queue
	kept *kept // nil but of a read-write lock

	mu      sync.Mutex
	hold    *lease.Lease  // who in this process holds; a lost dropIn hold stays until its Unlock
	place   *queue.Ticket // granted and not given up; nil without one
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
	dropIn bool
	ready  chan struct{} // closed once lease or err is set
	lease  *lease.Lease
	err    error
	moved  *batch // of a reader whose batch began anew
}

// Acquire waits for the lease, through disconnects and lost sessions, until ctx
// ends, the session is closed, or another attempt would not help.
func (c *Cohort) Acquire(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return lease.Traced(ctx, c.at, c.q.Kind, func(ctx context.Context) (*lease.Lease, error) {
		return c.kept.admitted(ctx, c.q.Kind, c.at.Session, func() (*lease.Lease, error) { return c.await(ctx, dropIn) })
	})
}

func (c *Cohort) await(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	if c.at.Misuse() != nil {
		return nil, c.at.Misuse()
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx) // before anything is created
	}
	w := &waiter{ctx: ctx, dropIn: dropIn, ready: make(chan struct{})}
	c.mu.Lock()
	c.waiters = append(c.waiters, w)
	run := func() {}
	switch {
	case !c.free():
		c.advance()
	case ctx.Done() == nil:
		// No goroutine is ahead here, so this one can wait for the servers itself.
		run = c.newJoin(nil, nil)
	default:
		run = c.inPerson(ctx, w)
	}
	c.mu.Unlock()
	if !c.at.Session.Within(run) {
		c.mu.Lock()
		c.join = nil
		c.fail(errs.ErrClosed)
		c.mu.Unlock()
	}
	select {
	case <-w.ready:
		return w.lease, w.err
	case <-ctx.Done():
		return nil, c.withdraw(w, errs.OfContext(ctx))
	case <-c.at.Session.Context().Done():
		return nil, c.withdraw(w, errs.ErrClosed)
	}
}

// free reports whether this process neither holds, nor has a place, nor is getting
// one. mu is held.
func (c *Cohort) free() bool {
	return c.hold == nil && c.place == nil && c.join == nil && len(c.waiters) == 1
}

// remove takes w off the waiters, if it is one. mu is held.
func (c *Cohort) remove(w *waiter) (was bool) {
	i := slices.Index(c.waiters, w)
	if i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	}
	return i >= 0
}

// withdraw takes a waiter out. If it was granted in the meantime, it hands the
// grant on.
func (c *Cohort) withdraw(w *waiter, err error) error {
	c.mu.Lock()
	var done <-chan struct{}
	// A waiter that is no longer in the list has cleaned up after its own attempt. A join that runs now is
	// that of another waiter.
	if c.remove(w) && len(c.waiters) == 0 && c.join != nil {
		c.join.cancel(errNobody)
		done = c.join.done
	}
	c.mu.Unlock()
	select {
	case <-w.ready:
		if w.lease != nil {
			w.lease.GiveBack(node.Grace) // the caller's time is up
		}
		return err
	default:
	}
	awaitCleanup(done, err)
	return err
}

// advance does the next step that is possible: grant to the next waiter, hand the place
// over, or begin to get one. mu is held.
func (c *Cohort) advance() {
	for c.hold == nil && len(c.waiters) > 0 {
		if c.join != nil {
			return // its end comes here again
		}
		if !c.hasPlace() {
			c.startJoin(nil, nil)
			return
		}
		w := c.waiters[0]
		c.waiters = c.waiters[1:]
		c.stopIdle()
		c.grantTo(w)
	}
}

// hasPlace reports whether there is a place to grant. If the place was lost, but lost has not been called yet,
// it forgets the place: a lease of it would never be told. Every grant on a place that
// was registered before asks this first, under the same lock. mu is held.
func (c *Cohort) hasPlace() bool {
	if c.place != nil && c.place.Over() {
		c.dropLost()
	}
	return c.place != nil
}

// grantTo gives the place to w. mu is held; there is a place, see hasPlace, and no holder.
func (c *Cohort) grantTo(w *waiter) {
	l := lease.New(w.ctx, c, c.at, c.place, c.passes, w.dropIn)
	if w.dropIn {
		c.kept.add(l)
	}
	if !c.at.Session.Remember(l) {
		w.err = errs.ErrClosed
		close(w.ready)
		return
	}
	l.BoundBy(c.at.Settings.MaxHold)
	c.hold = l
	w.lease = l
	close(w.ready)
}

// take puts a granted place to use. mu is held.
func (c *Cohort) take(p *queue.Ticket) {
	c.place, c.passes, c.granted, c.quiet = p, 0, time.Now(), nil
}

// fail ends all waits with err. mu is held.
func (c *Cohort) fail(err error) {
	for _, w := range c.waiters {
		w.err = err
		close(w.ready)
	}
	c.waiters = nil
}

// Released implements Grantor.
func (c *Cohort) Released(l *lease.Lease) { c.kept.remove(l) }

// Release implements Grantor.
func (c *Cohort) Release(l *lease.Lease, grace time.Duration) {
	c.mu.Lock()
	if c.place != l.Ticket() {
		if c.hold == l && !(l.DropIn() && l.Err() != errs.ErrReleased) {
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
	stays := l.DropIn() && l.Err() != errs.ErrReleased // see the field hold: one that was cut short
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
		old.Retire() // its removal, which is part of that request, is told before the answer
		c.place = nil
		c.startJoin(old, nil)
		c.mu.Unlock()
	case c.linger(l):
		c.mu.Unlock()
	default:
		p := c.place
		c.place = nil
		c.mu.Unlock()
		p.Leave(grace)
	}
}

// mostPasses leaves room in a token's Seq for changes that are not hand-overs: a downgrade, or a
// grant in the place of one that could not be given up.
const mostPasses = math.MaxUint32 - 1<<16

// unsettled reports whether the place of l must not be handed over: a guarded
// transaction that is under way, or whose outcome is unknown, must find the node gone, not a
// successor's hold of the same node. Or there are no tokens left for it. mu is held.
func (c *Cohort) unsettled(l *lease.Lease) bool {
	return l.Ticket().Unanswered() || c.passes >= mostPasses
}

// mayPass reports whether the place may go to the next waiter of this process. mu is held.
func (c *Cohort) mayPass(l *lease.Lease) bool {
	return !c.unsettled(l) && int(c.passes) < c.at.Settings.Handover &&
		time.Since(c.granted) < c.at.Settings.HandoverIn && c.place.Epoch.Valid() && !c.place.Over()
}

// giveUp leaves the place in the background. mu is held.
func (c *Cohort) giveUp() {
	p := c.place
	c.place = nil
	c.stopIdle()
	p.Leave(0)
}

// Current is the lease of the present holder in this process, nil without one.
func (c *Cohort) Current() *lease.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hold
}

// NewCohort makes the object of a lock of this kind.
func NewCohort(at *session.Access, kind queue.Kind) *Cohort {
	return &Cohort{at: at, q: at.Queue("", kind)}
}

// At has the arguments of the constructor.
func (c *Cohort) At() *session.Access { return c.at }

// Waiting is how many goroutines wait for a grant.
func (c *Cohort) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiters)
}
