package share

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Readers is the goroutines of this process that share one object and may hold together. They form batches.
// A batch has one ticket. A reader holds with a batch if it comes while the batch waits, or within a bound
// after the batch's grant. A later reader queues again, so that writers that queue are not starved.
type Readers struct {
	side
	write *Cohort

	mu      sync.Mutex
	current *batch                   // the batch that a reader may join; nil if there is none
	granted map[*queue.Ticket]*batch // the batches that are held
}

// batch is the readers that share one ticket. It is acquiring, then held, then idle for good.
type batch struct {
	of    *Readers
	state state

	// While it is acquiring.
	acquisition *acquisition
	waiters     line

	// Once it is held.
	ticket *queue.Ticket
	seq    uint32    // the Seq of its tokens
	until  time.Time // when it stops growing
	holds  lease.Set
}

// Finish implements session.Hold.
func (b *batch) Finish(err error) bool {
	b.of.mu.Lock()
	holds := b.holds.All()
	b.waiters.fail(errs.ErrClosed)
	b.of.mu.Unlock()
	for _, l := range holds {
		l.Finish(err)
	}
	return len(holds) > 0
}

// shareFor is how long after its grant a batch may grow: as long as a hand-over goes on by default. No option changes it.
const shareFor = session.DefaultHandoverIn

// NewReaders makes the read side of a lock whose write side is write.
func NewReaders(write *Cohort) *Readers {
	// Both sides share one set of holds: that is how a reader and a writer of this process see each other.
	write.side.dropIns = new(dropIns)
	q := *write.side.q
	q.Kind = queue.KindRead
	return &Readers{side: side{write.side.at, &q, write.side.dropIns}, write: write, granted: make(map[*queue.Ticket]*batch)}
}

// open reports whether a reader may join b now. mu is held.
func (b *batch) open(now time.Time) bool {
	return b != nil && (b.state == acquiring ||
		b.state == held && now.Before(b.until) && !b.ticket.Over() && b.ticket.Epoch.ValidAt(now))
}

// Close keeps later readers out of the present batch. It is called when a
// writer of this process has come: readers that come later must wait behind it.
func (r *Readers) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = nil
}

// Acquire waits for a read lease, like Cohort.Acquire.
func (r *Readers) Acquire(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return r.acquire(ctx, dropIn, r.ahead, r.await)
}

// ahead is [Cohort.ahead].
func (r *Readers) ahead() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch b := r.current; {
	case !b.open(time.Now()):
		return -1
	case b.state == held:
		return 0
	default:
		return b.acquisition.ahead()
	}
}

// placed implements placer.
func (b *batch) placed(a *acquisition, p queue.Place) {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.acquisition == a {
		b.waiters.placed(p)
	}
}

// await joins the present batch if that is held. Otherwise it waits, in the present
// batch or in a new one, until it is granted or fails.
func (r *Readers) await(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	l, now := lease.New(asked(ctx), r, r.at, dropIn), time.Now() // not under mu, which all readers need
	r.mu.Lock()
	b := r.current
	open := b.open(now)
	if open && b.state == held {
		defer r.mu.Unlock()
		tracingOf(ctx).Passed(nil)
		return r.join(b, l, now)
	}
	if r.at.Session.Closing() { // Finish may have failed those who wait already
		r.mu.Unlock()
		return nil, errs.ErrClosed
	}
	w := newWaiter(ctx, l)
	if open {
		b.waiters.add(w)
		if w.tr.Waits() {
			b.acquisition.place(w)
		}
	} else {
		b = r.newBatch()
		b.waiters.add(w)
		r.current = b
		r.begin(b)
	}
	if w.guard != nil {
		joined := b
		w.guard.stand(func() (string, bool) { return r.stands(joined, w) })
	}
	r.mu.Unlock()
	return w.wait(func(w *waiter) *acquisition { return r.withdraw(b, w) })
}

// join makes l a lease of b, or returns ErrClosed if the session is closing. mu is held.
func (r *Readers) join(b *batch, l *lease.Lease, now time.Time) (*lease.Lease, error) {
	if !r.give(l, b.ticket, b.seq, now) {
		return nil, errs.ErrClosed
	}
	b.holds.Add(l)
	return l, nil
}

// withdraw takes a waiter off the list of its batch. If nobody
// waits for the batch any more, its acquisition is cancelled; if its entry says what the waiter holds, the others queue again.
func (r *Readers) withdraw(b *batch, w *waiter) (cancelled *acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.waiters.remove(w)
	b.acquisition.leftBy(&r.side, w)
	cancelled = b.acquisition
	switch {
	case b.state != acquiring:
		return nil
	case b.waiters.len == 0:
		r.forget(b)
		cancelled.cancel(errNobody)
	case cancelled.speaksFor(w):
		cancelled.cancel(errNobody)
		r.begin(b)
	default:
		return nil
	}
	return cancelled
}

// stands is [Cohort.stands] for a reader of b.
func (r *Readers) stands(b *batch, w *waiter) (entry string, own bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !w.waits {
		return "", false
	}
	return b.acquisition.standing(w)
}

func (r *Readers) newBatch() *batch {
	b := &batch{of: r}
	b.state.become(acquiring, r.at.Session.Log())
	r.at.Session.Remember(b) // if that is refused, what begins now is refused, too
	return b
}

// begin begins the acquisition of a ticket for b. mu is held.
func (r *Readers) begin(b *batch) {
	get := func(ctx context.Context) (*queue.Ticket, error) { return r.q.Obtain(ctx, r.ticketLost) }
	a, run := r.newAcquisition(b.waiters.first, get, b, func(a *acquisition, p *queue.Ticket, err error) *queue.Ticket {
		return r.acquisitionEnded(b, a, p, err)
	})
	b.acquisition = a
	if !r.at.Session.Spawn(run) {
		r.end(b, errs.ErrClosed)
	}
}

// acquisitionEnded returns the ticket if nobody wants it any more.
func (r *Readers) acquisitionEnded(b *batch, a *acquisition, p *queue.Ticket, err error) (unwanted *queue.Ticket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case b.acquisition != a: // another has begun
		return p
	case err != nil || b.waiters.len == 0:
		r.end(b, err)
		return p
	case p.Over(): // lost since it was granted; ticketLost found no batch of it then, so it is dealt with here
		r.begin(b)
		return nil
	}
	now := time.Now()
	r.hold(b, p, 0, now)
	for w := b.waiters.next(); w != nil; w = b.waiters.next() {
		if _, err := r.join(b, w.lease, now); err != nil {
			w.failed(err)
		} else {
			w.granted()
		}
	}
	return r.unheld(b)
}

// hold makes b held, with p. mu is held.
func (r *Readers) hold(b *batch, p *queue.Ticket, seq uint32, now time.Time) {
	b.state.become(held, r.at.Session.Log())
	b.ticket, b.seq, b.until = p, seq, now.Add(shareFor)
	r.granted[p] = b
}

// end ends b. The readers that still wait for it fail with err. mu is held.
func (r *Readers) end(b *batch, err error) {
	b.state.become(idle, r.at.Session.Log())
	r.at.Session.Forget(b)
	r.forget(b)
	delete(r.granted, b.ticket)
	b.waiters.fail(r.reason(err))
}

// forget makes sure that nobody joins b any more. mu is held.
func (r *Readers) forget(b *batch) {
	if r.current == b {
		r.current = nil
	}
}

// unheld ends b if nobody holds with it any more, and then returns its ticket. mu is held.
func (r *Readers) unheld(b *batch) *queue.Ticket {
	if !b.holds.Empty() {
		return nil
	}
	r.end(b, nil)
	return b.ticket
}

// Try acquires a read lease if no writer holds or waits. Otherwise it
// returns ErrNotAcquired. It waits only for answers of the servers.
func (r *Readers) Try(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return r.try(ctx, dropIn, r.ahead, r.attempt)
}

// attempt is Try. It joins a batch that is held, and does not join one that still waits.
func (r *Readers) attempt(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	l, now := lease.New(asked(ctx), r, r.at, dropIn), time.Now()
	r.mu.Lock()
	if b := r.current; b.open(now) && b.state == held {
		defer r.mu.Unlock()
		tracingOf(ctx).Passed(nil)
		return r.join(b, l, now)
	}
	r.mu.Unlock()
	p, err := r.ticket(ctx, r.q.Try, r.ticketLost)
	if err != nil {
		return nil, err
	}
	return r.share(l, p, 0)
}

// share makes a batch of a ticket that was granted for one reader alone. From then on others may hold with it.
func (r *Readers) share(l *lease.Lease, p *queue.Ticket, seq uint32) (*lease.Lease, error) {
	now := time.Now()
	r.mu.Lock()
	b := r.newBatch()
	r.hold(b, p, seq, now)
	if !r.current.open(now) && r.write.Waiting() == 0 { // a writer who waits is ahead of readers who come now
		r.current = b
	}
	_, err := r.join(b, l, now)
	unwanted := r.unheld(b)
	r.mu.Unlock()
	if unwanted != nil { // the session is closing
		unwanted.Leave(0)
		return nil, err
	}
	p.OnLoss(r.ticketLost) // if the ticket has been lost by now, this call tells the lease
	return l, nil
}

// Ended implements Grantor.
func (r *Readers) Ended(l *lease.Lease, err error) { r.afterEnd(l, err) }

// Release implements Grantor.
func (r *Readers) Release(l *lease.Lease, grace time.Duration) {
	r.mu.Lock()
	var unwanted *queue.Ticket
	if b := r.granted[l.Ticket()]; b != nil { // else lost with its ticket, or released before
		b.holds.Remove(l)
		unwanted = r.unheld(b)
	}
	r.mu.Unlock()
	if unwanted != nil {
		unwanted.Leave(grace)
	}
}

// UnlockLost implements Grantor. Only dropIns is left to
// do: whatever ended the lease takes it out of its batch.
func (r *Readers) UnlockLost(l *lease.Lease) { r.dropIns.remove(r.q.Kind, l) }

// ticketLost is called when the ticket of a batch is lost.
func (r *Readers) ticketLost(p *queue.Ticket) {
	r.mu.Lock()
	b := r.granted[p]
	if b != nil {
		r.end(b, nil)
	}
	r.mu.Unlock()
	if b != nil {
		for _, l := range b.holds.All() { // end took b out of granted, so nobody changes its holds any more
			l.Finish(errs.ErrLost)
		}
	}
}
