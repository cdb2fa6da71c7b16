package zkqueue

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Delivery is an element that was received, for one Ack or Nack. While its lease is valid no other call gets
// it.
type Delivery[T any] struct {
	Value T
	// Attempt is 1 for the first delivery, and one more for each later one.
	Attempt int

	q       *Queue[T]
	claim   elements.Claim
	lease   *lease.Lease
	unwatch func() bool // ends the watch for the end of the lease
	ending  ending
}

// Receive waits like Take, and delivers the first element, to be acknowledged when the work is done. If this
// process dies, or its session ends, the element comes again. After an error it holds no element.
func (q *Queue[T]) Receive(ctx context.Context) (*Delivery[T], error) {
	d := &Delivery[T]{q: q.made()}
	tr := lease.Trace(ctx, q.at, queue.KindLock, func() int { return -1 })
	if tr != nil {
		ctx = tr.Context
	}
	var l *lease.Lease
	err := q.raw.Run(ctx, "receive", func(c *elements.Call) error {
		err := q.next(c, func(el elements.Content) error { return d.claimOf(c, el) })
		if err != nil {
			return err
		}
		if l, err = q.raw.Leases.LeaseOf(ctx, c.Epoch, d.claim.Name, d.claim.Czxid, d.leaseEnded); err != nil {
			q.raw.Forget() // the claim is given up, so its element comes before those that the view shows
		}
		return err
	}, session.Joined)
	if l, err = tr.End(l, err); err != nil {
		return nil, err
	}
	d.hold(l)
	d.trace(ctx, l, received, 0)
	return d, nil
}

// claimOf claims an element, or removes it if it cannot be decoded.
func (d *Delivery[T]) claimOf(c *elements.Call, el elements.Content) (err error) {
	var undecodable error
	if d.Value, undecodable = d.q.decode(el); undecodable != nil {
		if err := c.Remove(el); err != nil {
			return err
		}
		return undecodable
	}
	d.claim, err = c.Claim(el)
	d.Attempt = int(d.claim.Attempt)
	return err
}

func (d *Delivery[T]) hold(l *lease.Lease) {
	d.lease = l
	d.q.raw.Hold(d.claim, l)
	d.unwatch = context.AfterFunc(l.UnwatchedContext(), func() { d.q.raw.Drop(d.claim, true) })
}

// Lease is the lease on the element. Tokens of later deliveries are greater. When it is lost, the element
// comes again. Unlock is Nack.
func (d *Delivery[T]) Lease() *zksync.Lease { return (*zksync.Lease)(d.lease) }

// Ack removes the element: it never comes again. If ctx ends, the request goes on as long as the session
// lives. If the lease was lost first, the error is zksync.ErrLost: unless it is zksync.Ambiguous, the element
// comes again. After Ack or Nack it is zksync.ErrReleased.
func (d *Delivery[T]) Ack(ctx context.Context) error { return d.end(ctx, "ack", true) }

// Nack gives the element back, also if ctx has ended, or if it fails. Its errors are those of Ack.
func (d *Delivery[T]) Nack(ctx context.Context) error { return d.end(ctx, "nack", false) }

func (d *Delivery[T]) end(ctx context.Context, op string, ack bool) error {
	err := d.release(ctx, ack)
	if err == nil {
		held := time.Since(d.lease.Since())
		defer func() {
			switch {
			case ack && err == nil:
				d.trace(ctx, d.lease, acked, held)
			case !ack || !errs.Ambiguous(err): // the element comes again
				d.trace(ctx, d.lease, nacked, held)
			}
		}()
		ctx, cancel := d.afterLease(ctx)
		defer cancel()
		t := d.lease.Ticket()
		err = d.q.raw.End(ctx, t.Epoch, d.claim, ack, func() { t.End(queue.Replaced, 0) })
	}
	return d.q.at.Named(op, err)
}

// afterLease is ctx, but if the lease of d, which has been released, has ended ctx, the result ends at the deadline alone.
func (d *Delivery[T]) afterLease(ctx context.Context) (context.Context, context.CancelFunc) {
	if lease.From(ctx) != d.lease || context.Cause(ctx) != errs.ErrReleased {
		return ctx, func() {}
	}
	if at, ok := ctx.Deadline(); ok {
		return context.WithDeadline(context.WithoutCancel(ctx), at)
	}
	return context.WithoutCancel(ctx), func() {}
}

// release ends the lease, if it has not ended: of several calls one does. From then on nothing else deletes the claim.
func (d *Delivery[T]) release(ctx context.Context, ack bool) error {
	l := d.lease
	if err := l.Err(); err != nil {
		return err
	}
	if ack && ctx.Err() != nil { // Nack gives back all the same
		return errs.OfContext(ctx)
	}
	if t := l.Ticket(); !t.Epoch.Valid() || t.Over() {
		if l.Finish(errs.ErrLost) {
			d.q.raw.Leases.Release(l, 0)
		}
		return l.Err()
	}
	if ack {
		d.unwatch() // nothing comes free, so the view stays
		d.q.raw.Hold(d.claim, nil)
	}
	if !d.finish() {
		d.q.raw.Drop(d.claim, true)
		return l.Err()
	}
	l.Ticket().Retire()
	return nil
}
