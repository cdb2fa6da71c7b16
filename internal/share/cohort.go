package share

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Cohort is the goroutines of this process that share one object. It separates
// the holder in this process from the process's ticket in the queue: a grant costs
// two writes on a majority of the servers, a local hand-over costs nanoseconds.
//
// At any time the object has at most one ticket. One goroutine gets it for all that
// wait. The idea to hand a global lock over locally within a bound comes from cohort locks
// (Dice, Marathe, Shavit: Lock Cohorting, 2012).
type Cohort struct {
	side

	mu      sync.Mutex
	waiters []*waiter // in the order in which they came; none while idle or lingering
	state   state

	// What belongs to a state, and is nil in all others. Only become writes it.
	acquisition *acquisition // acquiring; nil for a Try, which nobody else may cancel
	grant       *grant       // held and lingering
	hold        *lease.Lease // held, replacing and lost
}

// grant is a ticket that the servers have granted, until this process gives it up.
type grant struct {
	ticket *queue.Ticket
	since  time.Time
	passes uint32      // hand-overs, and times of lingering: the Seq of the next token
	timer  *time.Timer // of the lingering

	// Whether a child watch was set that tells of others in the queue, and whether it has. Both outlive a single time of
	// lingering, so that locking and unlocking in turn costs no request at all.
	watched, contended bool
}

// NewCohort makes the object of a lock of this kind.
func NewCohort(at *session.Access, kind queue.Kind) *Cohort {
	return &Cohort{side: side{at: at, q: at.Queue("", kind)}}
}

// become changes the state. What belongs to the old one goes. mu is held, as for all that call it.
func (c *Cohort) become(to state, a *acquisition, g *grant, l *lease.Lease) {
	if c.state == lingering {
		c.grant.timer.Stop()
	}
	c.state.become(to, c.at.Session.Logger())
	c.acquisition, c.grant, c.hold = a, g, l
}

func (c *Cohort) becomeIdle()                         { c.become(idle, nil, nil, nil) }
func (c *Cohort) becomeAcquiring(a *acquisition)      { c.become(acquiring, a, nil, nil) }
func (c *Cohort) becomeHeld(g *grant, l *lease.Lease) { c.become(held, nil, g, l) }
func (c *Cohort) becomeLingering()                    { c.become(lingering, nil, c.grant, nil) }
func (c *Cohort) becomeReplacing()                    { c.become(replacing, nil, nil, c.hold) }
func (c *Cohort) becomeLost()                         { c.become(lost, nil, nil, c.hold) }

// Acquire waits for the lease, through disconnects and lost sessions, until ctx
// ends, the session is closed, or another attempt would not help.
func (c *Cohort) Acquire(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return c.acquire(ctx, dropIn, c.await)
}

func (c *Cohort) await(w *waiter) (*lease.Lease, error) {
	c.mu.Lock()
	c.waiters = append(c.waiters, w)
	if c.state == idle && w.ctx.Done() == nil {
		// This goroutine need not watch a context, so it can wait for the servers itself.
		run := c.begin(nil)
		c.mu.Unlock()
		if !c.at.Session.Within(run) {
			c.mu.Lock()
			c.acquired(nil, errs.ErrClosed)
			c.mu.Unlock()
		}
	} else {
		c.advance()
		c.mu.Unlock()
	}
	return w.wait(c.at.Session, c.withdraw)
}

// withdraw takes a waiter off the list. With the last one the acquisition ends: it cleans up for itself, and keeps nobody
// waiting who comes meanwhile.
func (c *Cohort) withdraw(w *waiter) (cancelled *acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.waiters)
	c.waiters = without(c.waiters, w)
	// A waiter that is no longer in the list has an answer. An acquisition that runs now is that of another waiter.
	if a := c.acquisition; a != nil && before == 1 && len(c.waiters) == 0 {
		c.becomeIdle()
		a.cancel(errNobody)
		return a
	}
	return nil
}

// advance sees to it that somebody acts for those who wait. In the states that it does nothing in, whatever
// ends the state calls it. mu is held.
func (c *Cohort) advance() {
	switch {
	case len(c.waiters) == 0:
	case c.state == idle:
		c.spawn(nil)
	case c.state == lingering:
		c.grantFirst(c.grant)
	}
}

// spawn begins an acquisition in a goroutine of its own; old is given up in the same request. The acquisition is
// one call of queue.Queue.ObtainFrom (newAcquisition), and ends in acquired. mu is held.
func (c *Cohort) spawn(old *queue.Ticket) {
	if c.at.Session.Spawn(c.begin(old)) {
		return
	}
	if old != nil {
		old.Leave(0)
	}
	c.acquired(nil, errs.ErrClosed)
}

// begin makes the acquisition that run carries out. mu is held.
func (c *Cohort) begin(old *queue.Ticket) (run func()) {
	var a *acquisition
	a, run = c.newAcquisition(old, c.onLoss, func(p *queue.Ticket, err error) *queue.Ticket {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.acquisition != a {
			return p // cancelled
		}
		c.acquired(p, err)
		return nil
	})
	c.becomeAcquiring(a)
	return run
}

// acquired is the end of the acquisition under way. mu is held.
func (c *Cohort) acquired(p *queue.Ticket, err error) {
	if err == nil {
		c.grantFirst(&grant{ticket: p, since: time.Now()})
		return
	}
	c.becomeIdle()
	fail(c.at.Session, c.waiters, err)
	c.waiters = nil
}

// grantFirst gives g to whoever has waited longest. mu is held, somebody waits, and nobody holds.
func (c *Cohort) grantFirst(g *grant) {
	if g.ticket.Over() {
		// A loss first marks the ticket as over, and then looks for a holder once, maybe before now: a lease that is
		// granted now might never be told.
		c.becomeIdle()
		c.advance()
		return
	}
	for len(c.waiters) > 0 {
		w := c.waiters[0]
		c.waiters = c.waiters[1:]
		if l := w.grant(&c.side, c, g.ticket, g.passes); l != nil {
			c.becomeHeld(g, l)
			return
		}
	}
	c.becomeIdle() // the session is closing
	g.ticket.Leave(0)
}

// Try acquires the lease if nobody holds or waits for it, here or elsewhere, and
// returns ErrNotAcquired otherwise. It waits for the servers' answers only.
func (c *Cohort) Try(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return c.try(ctx, dropIn, c.attempt)
}

func (c *Cohort) attempt(w *waiter) (*lease.Lease, error) {
	c.mu.Lock()
	if c.state == lingering && c.grant.ticket.Over() {
		c.becomeIdle()
	}
	switch c.state {
	case idle:
		c.becomeAcquiring(nil) // whoever comes now waits behind this attempt
		c.mu.Unlock()
		return c.lookOnce(w, c.q.Try)
	case lingering:
		defer c.mu.Unlock()
		return c.grantNow(w, c.grant)
	}
	c.mu.Unlock()
	return nil, errs.ErrNotAcquired
}

// lookOnce is try, which is Queue.Try, and what it ends with for w.
func (c *Cohort) lookOnce(w *waiter, try getting) (*lease.Lease, error) {
	p, err := c.ticket(w.ctx, try, c.onLoss)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.becomeIdle()
		c.advance()
		return nil, err
	}
	return c.grantNow(w, &grant{ticket: p, since: time.Now()})
}

// grantNow gives g to w, which is a Try: it is not on the list of those who wait, so that nothing is granted to it
// once it has returned. mu is held, and nobody holds.
func (c *Cohort) grantNow(w *waiter, g *grant) (*lease.Lease, error) {
	w.err = errs.ErrNotAcquired
	if !g.ticket.Over() { // else see grantFirst; it may end at any time, so this is the only look
		if l := w.grant(&c.side, c, g.ticket, g.passes); l != nil {
			c.becomeHeld(g, l)
			return l, nil
		}
		g.ticket.Leave(0) // the session is closing
	}
	c.becomeIdle()
	c.advance()
	return nil, w.err
}

// Released implements Grantor.
func (c *Cohort) Released(l *lease.Lease) { c.dropIns.remove(l) }

// Release implements Grantor.
func (c *Cohort) Release(l *lease.Lease, grace time.Duration) {
	c.mu.Lock()
	g, unwanted := c.grant, (*queue.Ticket)(nil)
	switch {
	case c.hold != l: // it was lost, or released before
	case c.state == lost && runsOn(l): // until UnlockLost
	case c.state == replacing && runsOn(l):
		c.becomeLost()
	case c.state != held:
		c.becomeIdle()
		c.advance()
	case runsOn(l):
		c.becomeLost()
		unwanted = g.ticket
	case len(c.waiters) > 0 && c.mayPass():
		g.passes++ // the next token must be greater
		c.grantFirst(g)
	case len(c.waiters) > 0:
		g.ticket.Retire() // its removal, which is part of that request, is told before the answer
		c.spawn(g.ticket)
	case c.linger():
	default:
		c.becomeIdle()
		unwanted = g.ticket
	}
	c.mu.Unlock()
	if unwanted != nil {
		unwanted.Leave(grace)
	}
}

// runsOn reports whether l has ended, but not by its Unlock: in the form without leases the critical section runs on.
func runsOn(l *lease.Lease) bool { return l.DropIn() && l.Err() != errs.ErrReleased }

// mostPasses leaves room in a token's Seq for changes that are not hand-overs: a downgrade, or a
// grant in the place of one that could not be given up.
const mostPasses = math.MaxUint32 - 1<<16

// unsettled reports whether nobody may hold g's ticket again: a guarded
// transaction that is under way, or whose outcome is unknown, must find the node gone, not a
// successor's hold of the same node. Or there are no tokens left for it.
func (g *grant) unsettled() bool {
	return g.ticket.Unanswered() || g.passes >= mostPasses
}

// mayPass reports whether the ticket may go to the next waiter of this process. mu is held.
func (c *Cohort) mayPass() bool {
	g := c.grant
	return !g.unsettled() && int(g.passes) < c.at.Settings.Handover &&
		time.Since(g.since) < c.at.Settings.HandoverIn && g.ticket.Epoch.Valid() && !g.ticket.Over()
}

// onLoss is called when the session of p has ended, or its node was removed.
func (c *Cohort) onLoss(p *queue.Ticket) {
	// The holder is told before anything below, which might delay that. (Its node has been given to the reaper before, which does
	// not block.) It is also told while the ticket is being replaced.
	if l := c.Current(); l != nil && l.Ticket() == p {
		l.Finish(errs.ErrLost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.grant != nil && c.grant.ticket == p {
		if c.state == held && c.hold.DropIn() {
			c.becomeLost() // after Close, too: the Unlock is still to come
		} else {
			c.becomeIdle()
		}
		c.advance()
	}
}

// UnlockLost is the Unlock of a lease that ended before. A hold of the form without leases keeps
// the other goroutines of this object out until then: they share its memory.
func (c *Cohort) UnlockLost(l *lease.Lease) {
	c.dropIns.remove(l)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != l {
		return
	}
	if c.state == held { // whoever ended the lease has not come here yet
		c.grant.ticket.Leave(0)
	}
	c.becomeIdle()
	c.advance()
}

// Current is the lease of the present holder in this process, nil without one.
func (c *Cohort) Current() *lease.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hold
}

// At has the arguments of the constructor.
func (c *Cohort) At() *session.Access { return c.at }

// Waiting is how many goroutines wait for a grant.
func (c *Cohort) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiters)
}
