package share

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Cohort is the goroutines of this process that share one object. It separates two things: who
// holds inside this process, and the process's ticket in the queue. A grant by the servers
// costs two writes on a majority of them. A hand-over inside the process costs nanoseconds.
//
// At any time the object has at most one ticket. One goroutine gets it for
// all that wait. The idea to hand a global lock over locally within a bound
// comes from cohort locks (Dice, Marathe, Shavit: Lock Cohorting, 2012).
type Cohort struct {
	monitored
	side side

	mu      sync.Mutex
	waiters line // none while idle or lingering
	state   state

	// Each field belongs to the states named beside it, and is nil in all others. Only become writes it.
	acquisition *acquisition // acquiring; nil for a Try, which no other goroutine may cancel
	grant       *grant       // held and lingering
	hold        *lease.Lease // held, replacing and runsOn
}

// grant is a ticket that the servers have granted, until this process gives it up.
type grant struct {
	c      *Cohort
	ticket *queue.Ticket
	since  time.Time // when the bound of hand-overs began to count
	passes uint32    // how often it changed hands, lingering included: the Seq of the next token

	timer *time.Timer // ends the lingering; nil before the first time
	ticks bool        // timer runs, perhaps for an earlier time of lingering
	until time.Time   // when the lingering ends
	heeds bool        // it has lingered, so a request to give the lock up ends the next time

	company company       // whether other contenders are known: see handover.go
	asked   time.Time     // when the servers were asked for them
	watch   *zkconn.Watch // it reports others; nil before the first answer
	first   uint32        // what passes was at since

	placed bool // those who wait were told that this process holds the place
}

// NewCohort makes the object of a lock of this kind.
func NewCohort(at *session.Access, kind queue.Kind) *Cohort {
	q := at.Queue("", kind)
	q.Says = true
	c := &Cohort{side: side{at: at, q: q}}
	c.as = monitor{c}
	return c
}

// Part says that the lock is a part of an object of the package pkg, whose path is above. So nothing else can be at the path of
// the lock.
func (c *Cohort) Part(pkg string) *Cohort {
	c.side.q.Type, c.side.at.Package = "", pkg
	return c
}

// become changes the state. The fields of the old state are
// cleared. mu is held here, and in all functions that call it.
func (c *Cohort) become(to state, a *acquisition, g *grant, l *lease.Lease) {
	if old := c.grant; old != nil && old != g && old.ticks {
		old.timer.Stop()
		old.ticks = false // a refused wait for a condition brings old back (regrant)
	}
	switch {
	case c.state == idle:
		c.side.at.Session.Remember(c) // if that is refused, the acquisition that begins now is refused, too
	case to == idle:
		c.side.at.Session.Forget(c)
	}
	c.state.become(to, c.side.at.Session.Log())
	c.acquisition, c.grant, c.hold = a, g, l
}

// Finish implements session.Hold.
func (c *Cohort) Finish(err error) bool {
	var lingers *queue.Ticket
	c.mu.Lock()
	l := c.hold
	c.waiters.fail(errs.ErrClosed)
	if c.state == lingering {
		lingers = c.grant.ticket
	}
	c.mu.Unlock()
	if lingers != nil {
		lingers.Unmark() // it sends a request, so not under mu
	}
	return l != nil && l.Finish(err)
}

// Acquire waits for the lease, through disconnects and lost sessions, until ctx
// ends, the session is closed, or another attempt would not help. side.acquire has what all ways to lock share; await is the
// cohort's own part of it.
func (c *Cohort) Acquire(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return c.side.acquire(ctx, dropIn, c.ahead, c.await)
}

// ahead is how many entries are ahead of one who comes now, as far as that is known; -1 if it is not.
func (c *Cohort) ahead() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == held || c.state == lingering {
		return 0
	}
	return c.acquisition.ahead()
}

// await takes a ticket that lingers. Otherwise it waits until it is granted or fails. In the states acquiring, held,
// replacing and runsOn it does nothing else: whoever ends the state sees to the goroutines that wait.
func (c *Cohort) await(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	l := lease.New(asked(ctx), c, c.side.at, dropIn)
	c.mu.Lock()
	if c.relock(l) {
		c.mu.Unlock()
		tracingOf(ctx).Passed(nil)
		return l, nil
	}
	if c.side.at.Session.Closing() { // Finish may have failed those who wait already
		c.mu.Unlock()
		return nil, errs.ErrClosed
	}
	w := newWaiter(ctx, l)
	c.waiters.add(w)
	c.place(w)
	if w.guard != nil {
		w.guard.stand(func() (string, bool) { return c.stands(w) })
	}
	if c.state == idle && ctx.Done() == nil {
		// The context of this goroutine never ends, so it can
		// wait for the servers itself, without another goroutine.
		run := c.begin(nil)
		c.mu.Unlock()
		if !c.side.at.Session.RunHere(run) {
			c.mu.Lock()
			c.acquisitionEnded(nil, errs.ErrClosed)
			c.mu.Unlock()
		}
	} else {
		c.advance(nil)
		c.mu.Unlock()
	}
	return w.wait(c.withdraw)
}

// place notes for the tracer where w stands, which waits from now on. mu is held.
func (c *Cohort) place(w *waiter) {
	switch {
	case !w.tr.Waits():
	case c.state == held:
		w.tr.Place(c.grant.place())
	default:
		c.acquisition.place(w)
	}
}

// placed implements placer.
func (c *Cohort) placed(a *acquisition, p queue.Place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.acquisition == a {
		c.waiters.placed(p)
	}
}

// place is that of goroutines of this process that wait for a hand-over.
func (g *grant) place() queue.Place {
	return queue.Place{Node: g.ticket.ShownNode(), Epoch: g.ticket.Epoch.Number()}
}

// withdraw takes a waiter off the list. If it was the last one, the acquisition is cancelled; also if its entry says what the waiter
// holds: then the others queue again. The cancelled
// acquisition cleans up by itself. A goroutine that comes meanwhile need not wait for that: the state is idle.
func (c *Cohort) withdraw(w *waiter) (cancelled *acquisition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A waiter that is no longer on the list has its answer. Then an acquisition
	// that runs now is not the one that w waited for, and must go on.
	waited := w.waits
	c.waiters.remove(w)
	c.acquisition.leftBy(&c.side, w)
	w.held = c.hold
	if a := c.acquisition; a != nil && waited && (c.waiters.len == 0 || a.speaksFor(w)) {
		c.become(idle, nil, nil, nil)
		a.cancel(errNobody)
		c.advance(nil)
		return a
	}
	return nil
}

// stands is where w stands: the entry with which it waits, or behind which; "" if it does not wait for another contender now.
func (c *Cohort) stands(w *waiter) (entry string, own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !w.waits:
	case c.acquisition != nil:
		return c.acquisition.standing(w)
	case c.state == held:
		return c.grant.ticket.Entry.Name, false
	}
	return "", false
}

// advance begins an acquisition for the goroutines that wait, in a goroutine of its own, if nobody does anything for them
// yet: the state is idle, or it is held with old, which the acquisition gives up in the same request, unless it stays. In the other
// states it does nothing: whatever ends such a state calls advance, or grants to the first of them itself. mu is held.
func (c *Cohort) advance(old *grant) {
	if c.waiters.len == 0 || c.state != idle && old == nil {
		return
	}
	if !c.side.at.Session.Spawn(c.begin(old)) {
		if old != nil {
			old.ticket.Leave(0)
		}
		c.acquisitionEnded(nil, errs.ErrClosed)
	}
}

// begin makes an acquisition and the state acquiring. run carries the acquisition out: it is one call of
// queue.Queue.ObtainFrom, unless old stays, and ends in acquisitionEnded. mu is held.
func (c *Cohort) begin(old *grant) (run func()) {
	get, before := c.obtain, (*lease.Lease)(nil)
	if old != nil {
		get, before, old.placed = old.renew, c.hold, false // for those who come while it asks
	}
	a, run := c.side.newAcquisition(c.waiters.first, get, c, func(a *acquisition, p *queue.Ticket, err error) *queue.Ticket {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.acquisition != a:
			return p // cancelled by withdraw; the ticket may have been granted at the same time
		case old != nil && p == old.ticket:
			c.pass(old, before, time.Now())
		default:
			c.acquisitionEnded(p, err)
		}
		return nil
	})
	c.become(acquiring, a, nil, nil)
	return run
}

func (c *Cohort) obtain(ctx context.Context) (*queue.Ticket, error) {
	return c.side.q.Obtain(ctx, c.ticketLost)
}

// acquisitionEnded is called with a ticket for the first who
// waits, or an error for all. mu is held.
func (c *Cohort) acquisitionEnded(p *queue.Ticket, err error) {
	if err == nil {
		now := time.Now()
		c.grantFirst(&grant{c: c, ticket: p, since: now}, nil, now)
		return
	}
	c.become(idle, nil, nil, nil)
	c.waiters.fail(c.side.reason(err))
}

// pass hands g over, from the hold before. mu is held, somebody waits, and nobody holds.
func (c *Cohort) pass(g *grant, before *lease.Lease, now time.Time) {
	g.passes++ // each token must be greater than the one before
	c.grantFirst(g, before, now)
}

// grantFirst gives g to the goroutine that has waited longest. before is nil unless g is handed over. mu is held, somebody waits,
// and nobody holds.
func (c *Cohort) grantFirst(g *grant, before *lease.Lease, now time.Time) {
	if g.ticket.Over() {
		// A loss first marks the ticket as over, and then looks once for a holder. It may have looked
		// already, so a lease that is granted now might never be told. If the ticket is not over
		// here, the loss has yet to look for the holder, which needs mu, and will find the new one.
		c.become(idle, nil, nil, nil)
		c.advance(nil)
		return
	}
	for w := c.waiters.next(); w != nil; w = c.waiters.next() {
		if c.grantTo(w.lease, g, now) {
			if before != nil {
				w.tr.Passed(before)
			}
			w.granted()
			return
		}
		w.failed(errs.ErrClosed)
	}
	c.become(idle, nil, nil, nil) // nobody took it: the session is closing
	g.ticket.Leave(0)
}

// grantTo makes l the lease of the hold, with g. It reports false once the session is closing. mu is held.
func (c *Cohort) grantTo(l *lease.Lease, g *grant, now time.Time) bool {
	granted := c.side.give(l, g.ticket, g.passes, now)
	if granted {
		c.become(held, nil, g, l)
		if first := c.waiters.first; first != nil && first.tr.Waits() && !g.placed {
			c.waiters.placed(g.place())
			g.placed = true // those who come from now on are told when they come
		}
	}
	return granted
}

// Ended implements Grantor.
func (c *Cohort) Ended(l *lease.Lease, err error) { c.side.afterEnd(l, err) }

// Release implements Grantor.
func (c *Cohort) Release(l *lease.Lease, grace time.Duration) {
	c.mu.Lock()
	now, g, unwanted, removed := time.Now(), c.grant, (*queue.Ticket)(nil), (<-chan struct{})(nil)
	overran := l.Err() != errs.ErrReleased // its bound has passed: the critical section may still run
	switch {
	case c.hold != l: // it was lost, or released before
	case c.state == runsOn && outlived(l): // its Unlock, which calls UnlockLost, ends the state
	case c.state == replacing && outlived(l):
		c.become(runsOn, nil, nil, c.hold)
	// The lease ended while its ticket was being replaced, or after its loss: there is no ticket to pass on.
	case c.state != held:
		c.become(idle, nil, nil, nil)
		c.advance(nil)
	case outlived(l):
		c.become(runsOn, nil, nil, c.hold)
		unwanted = g.ticket
	case overran && c.side.q.Delay > 0: // nobody of this process is granted before the delay either
		c.become(idle, nil, nil, nil)
		c.advance(nil)
		unwanted = g.ticket
	case c.waiters.len > 0 && g.mayPass(now):
		c.pass(g, l, now)
	case c.waiters.len > 0:
		if !g.mayStay(now) {
			removed = g.ticket.Retire() // its removal, which is part of that request, may be told before the answer: it is no loss
		}
		c.advance(g)
	case !overran && g.linger(now):
	default:
		c.become(idle, nil, nil, nil)
		unwanted = g.ticket
	}
	c.mu.Unlock()
	switch {
	case removed != nil: // a process that ends after this Unlock must not keep others out until its session ends
		node.Settle(g.ticket.Epoch, removed, grace)
	case unwanted == nil:
	case overran:
		unwanted.End(queue.Overrun, grace)
	default:
		unwanted.Leave(grace)
	}
}

// outlived reports whether l is a hold of the form without leases that ended before
// its Unlock. Its critical section runs until that Unlock, whatever the servers say.
func outlived(l *lease.Lease) bool { return l.DropIn() && l.Err() != errs.ErrReleased }

// ticketLost is called when the session of p has ended, or its
// node was removed. The ticket has been given up before.
func (c *Cohort) ticketLost(p *queue.Ticket) {
	// The holder is told first: everything below might delay that. (Before this call the node was
	// given to the reaper, which does not block.) It is told also while the ticket is being replaced.
	if l := c.Current(); l != nil && l.Ticket() == p {
		l.Finish(errs.ErrLost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.grant != nil && c.grant.ticket == p {
		if c.state == held && c.hold.DropIn() {
			c.become(runsOn, nil, nil, c.hold) // after Close, too: its Unlock is still to come
		} else {
			c.become(idle, nil, nil, nil)
		}
		c.advance(nil)
	}
}

// UnlockLost is the Unlock of a lease that ended before. Until this Unlock, a
// hold of the form without leases keeps the other goroutines of this object
// out, because its critical section still runs, and they share its memory.
func (c *Cohort) UnlockLost(l *lease.Lease) {
	c.side.dropIns.remove(c.side.q.Kind, l)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != l {
		return
	}
	if c.state == held { // whoever ended the lease has not come to Release or ticketLost yet
		c.grant.ticket.End(queue.Overrun, 0)
	}
	c.become(idle, nil, nil, nil)
	c.advance(nil)
}

// Current is the lease of the present hold in this process; nil if there is none.
func (c *Cohort) Current() *lease.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hold
}

// At returns what the constructor was given.
func (c *Cohort) At() *session.Access { return c.side.at }

// Waiting is how many goroutines wait for a grant.
func (c *Cohort) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiters.len
}
