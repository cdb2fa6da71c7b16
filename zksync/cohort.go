package zksync

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
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
	*access
	q    *queue.Queue
	kept *kept // nil but of a read-write lock

	mu      sync.Mutex
	hold    *Lease        // who in this process holds; a lost mirror hold stays until its Unlock
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
	mirror bool
	ready  chan struct{} // closed once lease or err is set
	lease  *Lease
	err    error
	moved  *batch // of a reader whose batch began anew
}

// acquire waits for the lease: through disconnects and lost sessions, until ctx
// ends, the session is closed, or trying again would not mend it.
func (c *cohort) acquire(ctx context.Context, mirror bool) (*Lease, error) {
	return c.traced(ctx, c.q.Kind, func(ctx context.Context) (*Lease, error) {
		return c.kept.admitted(ctx, c.q.Kind, c.s, func() (*Lease, error) { return c.await(ctx, mirror) })
	})
}

func (c *cohort) await(ctx context.Context, mirror bool) (*Lease, error) {
	if c.misuse != nil {
		return nil, c.misuse
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx) // before anything is created
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
		run = c.inPerson(ctx, w)
	}
	c.mu.Unlock()
	if !c.s.within(run) {
		c.mu.Lock()
		c.join = nil
		c.fail(ErrClosed)
		c.mu.Unlock()
	}
	select {
	case <-w.ready:
		return w.lease, w.err
	case <-ctx.Done():
		return nil, c.withdraw(w, errs.OfContext(ctx))
	case <-c.s.ctx.Done():
		return nil, c.withdraw(w, ErrClosed)
	}
}

// free reports whether nobody of this process holds, has a place, or is getting
// one. mu is held.
func (c *cohort) free() bool {
	return c.hold == nil && c.place == nil && c.join == nil && len(c.waiters) == 1
}

// remove takes w off the waiters, if it is one. mu is held.
func (c *cohort) remove(w *waiter) (was bool) {
	i := slices.Index(c.waiters, w)
	if i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	}
	return i >= 0
}

// withdraw takes a waiter out. If it was granted in the meantime, it pretends not
// to have noticed and passes the grant on.
func (c *cohort) withdraw(w *waiter, err error) error {
	c.mu.Lock()
	var done <-chan struct{}
	// A waiter that is no longer in the list has cleaned up after its own attempt; a join that runs now is
	// somebody else's.
	if c.remove(w) && len(c.waiters) == 0 && c.join != nil {
		c.join.cancel(errNobody)
		done = c.join.done
	}
	c.mu.Unlock()
	select {
	case <-w.ready:
		if w.lease != nil {
			w.lease.giveBack(node.Grace) // the caller's time is up
		}
		return err
	default:
	}
	awaitCleanup(done, err)
	return err
}

// advance does whatever can be done now: grant to the next waiter, hand the place
// over, or begin to get one. mu is held.
func (c *cohort) advance() {
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

// hasPlace reports whether there is a place to grant. One whose loss is on its way here, but
// has not come yet, is forgotten: a lease of it would never be told. Every grant on a place that
// the books have had before asks this first, under the same lock. mu is held.
func (c *cohort) hasPlace() bool {
	if c.place != nil && c.place.Over() {
		c.dropLost()
	}
	return c.place != nil
}

// grantTo gives the place to w. mu is held; there is a place, see hasPlace, and no holder.
func (c *cohort) grantTo(w *waiter) {
	l := newLease(w.ctx, c, c.access, c.place, c.passes, w.mirror)
	if w.mirror {
		c.kept.add(l)
	}
	if !c.s.remember(l) {
		w.err = ErrClosed
		close(w.ready)
		return
	}
	l.boundBy(c.set.maxHold)
	c.hold = l
	w.lease = l
	close(w.ready)
}

// take puts a granted place to use. mu is held.
func (c *cohort) take(p *queue.Ticket) {
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

// release implements books.
func (c *cohort) release(l *Lease, grace time.Duration) {
	if l.Err() == ErrReleased {
		c.kept.remove(l)
	}
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

// unlockWait is how long an Unlock waits for the servers' confirmation.
const unlockWait = time.Second

// mostPasses leaves room in a token's Seq for what comes without asking: a downgrade, or a
// grant in the place of one that could not be given up.
const mostPasses = math.MaxUint32 - 1<<16

// unsettled reports whether the place of l must not be held by anybody else: a guarded
// transaction that is under way, or of which nobody knows, must find the node gone, not a
// successor's hold of the same node. Or there are no tokens left for it. mu is held.
func (c *cohort) unsettled(l *Lease) bool {
	l.mu.Lock()
	guards := l.guards
	l.mu.Unlock()
	return guards > 0 || l.p.Doubtful() || c.passes >= mostPasses
}

// mayPass reports whether the place may go to the next waiter of this process. mu is held.
func (c *cohort) mayPass(l *Lease) bool {
	return !c.unsettled(l) && int(c.passes) < c.set.handover &&
		time.Since(c.granted) < c.set.handoverIn && c.place.Epoch.Valid() && !c.place.Over()
}

// giveUp leaves the place in the background. mu is held.
func (c *cohort) giveUp() {
	p := c.place
	c.place = nil
	c.stopIdle()
	p.Leave(0)
}

// current is the lease of whoever in this process holds now, nil without one.
func (c *cohort) current() *Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hold
}

// newCohort makes the object of a lock of this kind. An error waits for the first call.
func newCohort(s *Session, path string, kind Kind, grant queue.Policy, opts []Option) *cohort {
	a := newAccess(s, path, opts)
	return &cohort{access: a, q: a.queue("", kind, grant)}
}
