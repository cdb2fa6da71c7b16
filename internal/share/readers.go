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
// after the batch's grant. A later reader queues anew, so that writers that queue are not starved.
type Readers struct {
	side
	write *Cohort

	mu      sync.Mutex
	current *batch                   // the batch that a reader may join; nil if there is none
	granted map[*queue.Ticket]*batch // the batches that are held
}

// batch is the readers that share one ticket. It is acquiring, then held, then idle for good.
type batch struct {
	state state

	// While it is acquiring.
	acquisition *acquisition
	waiters     []*waiter

	// Once it is held.
	ticket *queue.Ticket
	seq    uint32    // the Seq of its tokens
	until  time.Time // when it stops growing
	holds  map[*lease.Lease]struct{}
}

// shareFor is how long after its grant a batch may grow.
const shareFor = session.DefaultHandoverIn

// NewReaders makes the read side of a lock whose write side is write.
func NewReaders(write *Cohort) *Readers {
	// Both sides share one set of holds: that is how a reader and a writer of this process see each other.
	write.dropIns = new(dropIns)
	q := *write.q
	q.Kind = queue.KindRead
	return &Readers{side: side{write.at, &q, write.dropIns}, write: write, granted: make(map[*queue.Ticket]*batch)}
}

// open reports whether a reader may join b now. mu is held.
func (b *batch) open() bool {
	return b != nil && (b.state == acquiring ||
		b.state == held && time.Now().Before(b.until) && !b.ticket.Over() && b.ticket.Epoch.Valid())
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
	return r.acquire(ctx, dropIn, r.await)
}

// await puts w into the present batch, or into a new one, and waits until it is granted or fails.
func (r *Readers) await(w *waiter) (*lease.Lease, error) {
	r.mu.Lock()
	b := r.current
	switch {
	case !b.open():
		b = r.newBatch()
		r.current, b.waiters = b, []*waiter{w}
		r.begin(b)
	case b.state == held:
		r.grantTo(b, w)
	default:
		b.waiters = append(b.waiters, w)
	}
	r.mu.Unlock()
	return w.wait(r.at.Session, func(w *waiter) *acquisition { return r.withdraw(b, w) })
}

// withdraw takes a waiter off the list of its batch. If nobody
// waits for the batch any more, its acquisition is cancelled.
func (r *Readers) withdraw(b *batch, w *waiter) (cancelled *acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.waiters = without(b.waiters, w)
	if b.state != acquiring || len(b.waiters) > 0 {
		return nil
	}
	r.forget(b)
	b.acquisition.cancel(errNobody)
	return b.acquisition
}

func (r *Readers) newBatch() *batch {
	b := new(batch)
	b.state.become(acquiring, r.at.Session.Logger())
	return b
}

// begin begins the acquisition of a ticket for b. mu is held.
func (r *Readers) begin(b *batch) {
	a, run := r.newAcquisition(nil, r.onLoss, func(p *queue.Ticket, err error) *queue.Ticket { return r.ended(b, p, err) })
	b.acquisition = a
	if !r.at.Session.Spawn(run) {
		r.end(b, errs.ErrClosed)
	}
}

// ended ends b's acquisition. It returns the ticket if nobody wants it any more.
func (r *Readers) ended(b *batch, p *queue.Ticket, err error) (unwanted *queue.Ticket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil || len(b.waiters) == 0:
		r.end(b, err)
		return p
	case p.Over(): // lost since it was granted; onLoss found no batch of it then, so it is dealt with here
		r.begin(b)
		return nil
	}
	r.hold(b, p, 0)
	for _, w := range b.waiters {
		r.grantTo(b, w)
	}
	b.waiters = nil
	return r.unheld(b)
}

// hold makes b held, with p. mu is held.
func (r *Readers) hold(b *batch, p *queue.Ticket, seq uint32) {
	b.state.become(held, r.at.Session.Logger())
	b.ticket, b.seq, b.until, b.holds = p, seq, time.Now().Add(shareFor), make(map[*lease.Lease]struct{})
	r.granted[p] = b
}

// end ends b. The readers that still wait for it fail with err. mu is held.
func (r *Readers) end(b *batch, err error) {
	b.state.become(idle, r.at.Session.Logger())
	r.forget(b)
	delete(r.granted, b.ticket)
	fail(r.at.Session, b.waiters, err)
	b.waiters = nil
}

// forget makes sure that nobody joins b any more. mu is held.
func (r *Readers) forget(b *batch) {
	if r.current == b {
		r.current = nil
	}
}

// unheld ends b if nobody holds with it any more, and then returns its ticket. mu is held.
func (r *Readers) unheld(b *batch) *queue.Ticket {
	if len(b.holds) > 0 {
		return nil
	}
	r.end(b, nil)
	return b.ticket
}

// grantTo lets w hold with b. mu is held.
func (r *Readers) grantTo(b *batch, w *waiter) {
	if l := w.grant(&r.side, r, b.ticket, b.seq); l != nil {
		b.holds[l] = struct{}{}
	}
}

// Try acquires a read lease if no writer holds or waits. Otherwise it
// returns ErrNotAcquired. It waits only for answers of the servers.
func (r *Readers) Try(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return r.try(ctx, dropIn, r.attempt)
}

// attempt is Try for w. It joins a batch that is held, and does not join one that still waits.
func (r *Readers) attempt(w *waiter) (*lease.Lease, error) {
	r.mu.Lock()
	if b := r.current; b.open() && b.state == held {
		r.grantTo(b, w)
		r.mu.Unlock()
		return w.lease, w.err
	}
	r.mu.Unlock()
	p, err := r.ticket(w.ctx, r.q.Try, r.onLoss)
	if err != nil {
		return nil, err
	}
	r.share(p, 0, w)
	return w.lease, w.err
}

// share makes a batch of a ticket that was granted for w alone. From then on other readers may hold with w.
func (r *Readers) share(p *queue.Ticket, seq uint32, w *waiter) {
	r.mu.Lock()
	b := r.newBatch()
	r.hold(b, p, seq)
	if !r.current.open() && r.write.Waiting() == 0 { // a writer who waits is ahead of readers who come now
		r.current = b
	}
	r.grantTo(b, w)
	unwanted := r.unheld(b)
	r.mu.Unlock()
	if unwanted != nil { // the session is closing
		unwanted.Leave(0)
		return
	}
	p.OnLoss(r.onLoss) // if the ticket has been lost by now, this call tells w's lease
}

// Released implements Grantor.
func (r *Readers) Released(l *lease.Lease) { r.dropIns.remove(l) }

// Release implements Grantor.
func (r *Readers) Release(l *lease.Lease, grace time.Duration) {
	r.mu.Lock()
	var unwanted *queue.Ticket
	if b := r.granted[l.Ticket()]; b != nil { // else lost with its ticket, or released before
		delete(b.holds, l)
		unwanted = r.unheld(b)
	}
	r.mu.Unlock()
	if unwanted != nil {
		unwanted.Leave(grace)
	}
}

// UnlockLost implements Grantor. Only dropIns is left to
// do: whatever ended the lease takes it out of its batch.
func (r *Readers) UnlockLost(l *lease.Lease) { r.dropIns.remove(l) }

// onLoss is called when the ticket of a batch is lost.
func (r *Readers) onLoss(p *queue.Ticket) {
	r.mu.Lock()
	b := r.granted[p]
	if b != nil {
		r.end(b, nil)
	}
	r.mu.Unlock()
	if b != nil {
		for l := range b.holds { // end took b out of granted, so nobody changes its holds any more
			l.Finish(errs.ErrLost)
		}
	}
}
