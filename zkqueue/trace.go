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

// The events of an element, for a zksync.DeliveryTracer.
const (
	put      = "put"
	received = "received"
	acked    = "acked"
	nacked   = "nacked"
	dead     = "dead"
)

// trace calls the tracer with an event, if it wants that.
func (q *Queue[T]) trace(ctx context.Context, d session.Delivery) {
	if t := q.at.Session.Trace(); t != nil && t.Delivery != nil {
		d.Path, d.Name = q.at.Path, q.at.Settings.Label
		t.Delivery(ctx, d)
	}
}

// traceTaken calls it for elements that were taken: each was received, and acknowledged at once.
func (q *Queue[T]) traceTaken(ctx context.Context, attempts ...int) {
	for _, n := range attempts {
		q.trace(ctx, session.Delivery{Event: received, Attempt: n})
		q.trace(ctx, session.Delivery{Event: acked, Attempt: n})
	}
}

func (d *Delivery[T]) trace(ctx context.Context, l *lease.Lease, event string, held time.Duration) {
	d.q.trace(ctx, session.Delivery{Event: event, Attempt: d.Attempt, Token: l.Token(), Held: held})
}

// ending is how the lease of a delivery ends, which a tracer sees once: Ack and Nack call the tracer themselves, or else Unlock or
// Close of the session does, which gives the element back as Nack does. Of several at a time one ends it.
type ending struct {
	mu       sync.Mutex  // held by an Ack or a Nack that is about to end the lease
	busy     atomic.Bool // one is
	untraced atomic.Bool // the lease was released, and the tracer was not called yet
}

// leaseEnded is called when the lease has ended, in the goroutine that ends it.
func (d *Delivery[T]) leaseEnded(l *lease.Lease, err error) {
	if err != errs.ErrReleased { // it is lost, which a tracer sees as for every lease
		return
	}
	d.ending.untraced.Store(true)
	if !d.ending.busy.Load() {
		d.traceNacked(l)
	} // else finish calls it: it clears busy first
}

// finish ends the lease for an Ack or a Nack. It reports whether it did.
func (d *Delivery[T]) finish() bool {
	e := &d.ending
	e.mu.Lock()
	e.busy.Store(true)
	finished := d.lease.Finish(errs.ErrReleased)
	if finished {
		e.untraced.Store(false)
	}
	e.busy.Store(false)
	e.mu.Unlock()
	d.traceNacked(d.lease)
	return finished
}

// traceNacked calls the tracer if the lease was released without an Ack or a Nack, and it was not called yet. Close of the session does
// that when all leases have ended.
func (d *Delivery[T]) traceNacked(l *lease.Lease) {
	if !d.ending.untraced.Swap(false) {
		return
	}
	held := time.Since(l.Since())
	nack := func() { d.trace(l.UnwatchedContext(), l, nacked, held) }
	if !d.q.at.Session.AfterHolds(nack) {
		nack()
	}
}
