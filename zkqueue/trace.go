package zkqueue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/session"
)

// The events of an element that a zksync.DeliveryTracer is told of.
const (
	put      = "put"
	received = "received"
	acked    = "acked"
	nacked   = "nacked"
)

// tell tells the tracer of an event, if it wants to know.
func (q *Queue[T]) tell(ctx context.Context, d session.Delivery) {
	if t := q.at.Session.Trace(); t != nil && t.Delivery != nil {
		d.Path, d.Name = q.at.Path, q.at.Settings.Label
		t.Delivery(ctx, d)
	}
}

// tellTaken tells it that elements were taken: each was received, and acknowledged at once.
func (q *Queue[T]) tellTaken(ctx context.Context, attempts ...int) {
	for _, n := range attempts {
		q.tell(ctx, session.Delivery{Event: received, Attempt: n})
		q.tell(ctx, session.Delivery{Event: acked, Attempt: n})
	}
}

func (d *Delivery[T]) tell(ctx context.Context, l *lease.Lease, event string, held time.Duration) {
	d.q.tell(ctx, session.Delivery{Event: event, Attempt: d.Attempt, Token: l.Token(), Held: held})
}

// ending is how the lease of a delivery ends, of which a tracer is told once: by Ack or Nack, which tell themselves, or by Unlock or
// Close of the session, which give the element back as Nack does. Of several at a time one ends it.
type ending struct {
	mu     sync.Mutex  // held by an Ack or a Nack that is about to end the lease
	busy   atomic.Bool // one is
	untold atomic.Bool // the lease was released, and the tracer is not told yet
}

// leaseEnded is called when the lease has ended, in the goroutine that ends it.
func (d *Delivery[T]) leaseEnded(l *lease.Lease, err error) {
	if err != errs.ErrReleased { // it is lost, of which the tracer is told as of every lease
		return
	}
	d.ending.untold.Store(true)
	if !d.ending.busy.Load() {
		d.tellNacked(l)
	} // else finish tells: it clears busy first
}

// finish ends the lease for an Ack or a Nack. It reports whether it did.
func (d *Delivery[T]) finish() bool {
	e := &d.ending
	e.mu.Lock()
	e.busy.Store(true)
	finished := d.lease.Finish(errs.ErrReleased)
	if finished {
		e.untold.Store(false)
	}
	e.busy.Store(false)
	e.mu.Unlock()
	d.tellNacked(d.lease)
	return finished
}

// tellNacked tells the tracer that the lease was released without an Ack or a Nack, if it is not told yet. Close of the session does
// that when all leases have ended.
func (d *Delivery[T]) tellNacked(l *lease.Lease) {
	if !d.ending.untold.Swap(false) {
		return
	}
	held := time.Since(l.Since())
	nack := func() { d.tell(l.UnwatchedContext(), l, nacked, held) }
	if !d.q.at.Session.AfterHolds(nack) {
		nack()
	}
}
