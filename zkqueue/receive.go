package zkqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Delivery is an element that was received, for one Ack or Nack. While its lease is valid no other call gets
// it.
type Delivery[T any] struct {
	Value T
	// Attempt is 1 for the first delivery, and one more for each later one. A delivery that the end of [Queue.Work] cuts short may not
	// count.
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
	r := q.made().receives(ctx)
	return r.end(q.raw.Run(r.ctx, "receive", r.claim, session.Joined))
}

// TryReceive is Receive if there is an element now; else it returns false.
func (q *Queue[T]) TryReceive(ctx context.Context) (d *Delivery[T], ok bool, err error) {
	r := q.made().receives(ctx)
	r.next = q.any
	d, err = r.end(q.raw.Run(r.ctx, "try-receive", r.claim, session.Joined))
	if errors.Is(err, errs.ErrNotAcquired) {
		return nil, false, nil
	}
	return d, err == nil, err
}

// any has f take an element that is free now. The error is errs.ErrNotAcquired if there is none.
func (q *Queue[T]) any(c *elements.Call, f func(elements.Content) error) error {
	return q.persist(c, func() error {
		p, err := c.Any()
		if err == nil && p == nil {
			err = errs.ErrNotAcquired
		}
		if err == nil {
			err = attempt(c, p, f)
		}
		return err
	})
}

// reception is one call that receives an element.
type reception[T any] struct {
	q      *Queue[T]
	ctx    context.Context
	tr     *lease.Tracing
	next   func(*elements.Call, func(elements.Content) error) error
	decode func(elements.Content) (T, error)
	// spoiled does away with an element that cannot be decoded, because of the error. Then nothing is claimed.
	spoiled func(*elements.Call, elements.Content, error) error
	grace   time.Duration // for a claim that is under way when ctx ends

	d *Delivery[T]
	l *lease.Lease
}

// receives begins a Receive.
func (q *Queue[T]) receives(ctx context.Context) *reception[T] {
	r := &reception[T]{q: q, ctx: ctx, next: q.next, decode: q.decode, d: &Delivery[T]{q: q}}
	r.spoiled = func(c *elements.Call, el elements.Content, _ error) error { return c.Remove(el) } // the caller has the error
	if r.tr = lease.Trace(ctx, q.at, queue.KindLock, func() int { return -1 }); r.tr != nil {
		r.ctx = r.tr.Context
	}
	return r
}

// claim claims an element.
func (r *reception[T]) claim(c *elements.Call) (err error) {
	longer, claiming := r.ctx, c
	if r.grace > 0 {
		var cancel context.CancelFunc
		longer, cancel = node.Extend(c, r.grace) // which Close ends, too
		defer cancel()
		claiming = c.In(longer)
	}
	if err := r.next(c, func(el elements.Content) error { return r.claimOf(claiming, el) }); err != nil {
		return err
	}
	if r.l, err = r.q.raw.Leases.LeaseOf(longer, c.Epoch, r.d.claim.Name, r.d.claim.Czxid, r.d.leaseEnded); err != nil {
		r.q.raw.Forget() // the claim is given up, so its element comes before those that the view shows
	}
	return err
}

// claimOf claims an element, unless it cannot be decoded.
func (r *reception[T]) claimOf(c *elements.Call, el elements.Content) (err error) {
	var undecodable error
	if r.d.Value, undecodable = r.decode(el); undecodable != nil {
		if err := r.spoiled(c, el, undecodable); err != nil {
			return err
		}
		return undecodable
	}
	r.d.Attempt = el.Attempt()
	r.d.claim, err = c.Claim(el)
	return err
}

// end is the end of the call: err is that of the claim.
func (r *reception[T]) end(err error) (*Delivery[T], error) {
	l, err := r.tr.End(r.l, err)
	if err != nil {
		return nil, err
	}
	r.d.hold(l)
	r.d.trace(r.ctx, l, received, 0)
	return r.d, nil
}

func (d *Delivery[T]) hold(l *lease.Lease) {
	d.lease = l
	d.q.raw.Hold(d.claim, l)
	d.unwatch = context.AfterFunc(l.UnwatchedContext(), func() { d.q.raw.Drop(d.claim, true) })
}

// ID names the element: it is the same in each delivery, and in a [DeadElement].
func (d *Delivery[T]) ID() string { return d.claim.ID() }

// Enqueued is when the element was put, by the servers' clock.
func (d *Delivery[T]) Enqueued() time.Time { return d.claim.Enqueued() }

// Lease is the lease on the element. Tokens of later deliveries are greater. When it is lost, the element
// comes again. Unlock is Nack.
func (d *Delivery[T]) Lease() *zksync.Lease { return (*zksync.Lease)(d.lease) }

// Ack removes the element: it never comes again. If ctx ends, the request goes on as long as the session
// lives. If the lease was lost first, the error is zksync.ErrLost: unless it is zksync.Ambiguous, the element
// comes again. After Ack or Nack it is zksync.ErrReleased.
func (d *Delivery[T]) Ack(ctx context.Context) error { return d.end(ctx, "ack", elements.Ending{}) }

// Nack gives the element back, also if ctx has ended, or if it fails. With WithDelay it does not come again before that
// time, by the clock of the servers' leader, counted from the call. With WithPriority it has that priority from now on. Its errors
// are those of Ack; after one of them the delay may be lost. After zksync.ErrMisuse, of a nil option, the delivery goes on.
func (d *Delivery[T]) Nack(ctx context.Context, opts ...PutOption) error {
	p := placeOf(true, opts)
	if p.bad != nil {
		return d.q.at.Named("nack", p.bad)
	}
	how := elements.Ending{Again: true, Delay: p.delay}
	if p.moves {
		how.Priority = &p.priority
	}
	return d.end(ctx, "nack", how)
}

func (d *Delivery[T]) end(ctx context.Context, op string, how elements.Ending) error {
	err := d.release(ctx, how)
	if err == nil {
		held := time.Since(d.lease.Since())
		defer func() {
			switch {
			case how.Dead && err == nil:
				d.q.died(ctx, session.Delivery{Attempt: d.Attempt, Token: d.lease.Token(), Held: held}, d.ID(), how.Why)
			case !how.Again && err == nil:
				d.trace(ctx, d.lease, acked, held)
			case how.Again || !errs.Ambiguous(err): // the element comes again
				d.trace(ctx, d.lease, nacked, held)
			}
		}()
		ctx, cancel := d.afterLease(ctx)
		defer cancel()
		t := d.lease.Ticket()
		err = d.q.raw.End(ctx, t.Epoch, d.claim, how, func() { t.End(queue.Replaced, 0) })
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
func (d *Delivery[T]) release(ctx context.Context, how elements.Ending) error {
	l := d.lease
	if err := l.Err(); err != nil {
		return err
	}
	if !how.Again && ctx.Err() != nil { // Nack gives back all the same
		return errs.OfContext(ctx)
	}
	if t := l.Ticket(); !t.Epoch.Valid() || t.Over() {
		if l.Finish(errs.ErrLost) {
			d.q.raw.Leases.Release(l, 0)
		}
		return l.Err()
	}
	if !how.ComesFree() {
		d.unwatch() // the view stays
		d.q.raw.Hold(d.claim, nil)
	}
	if !d.finish() {
		d.q.raw.Drop(d.claim, true)
		return l.Err()
	}
	l.Ticket().Retire()
	return nil
}
