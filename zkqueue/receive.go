package zkqueue

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Delivery is an element that was received. It is for one call of Ack or Nack; until then nobody else gets the
// element, as long as the lease is valid. Goroutines may share it.
type Delivery[T any] struct {
	Value T
	// Attempt is 1 for the first delivery of an element, and one more for each later one, to anybody.
	Attempt int

	q       *Queue[T]
	claim   elements.Claim
	lease   *lease.Lease
	unwatch func() bool // ends the watch for the end of the lease
}

// Receive gives the first element to the caller, who acknowledges it when the work is done. Until then the element is
// in the queue, but nobody else gets it. If this process dies, or its session ends in another way, the element comes
// again, at its old place.
//
// It blocks and waits like Take, and does not hold an element after an error: an element that it got too late is given
// back. Disconnects delay it, and it goes on in the next session. Errors are those of Take, but none satisfies
// zksync.Ambiguous, except for an element that cannot be decoded, which it takes. It costs two requests for each
// element that an earlier listing of the object has shown, and four more if there is no such listing; Ack costs one.
func (q *Queue[T]) Receive(ctx context.Context) (*Delivery[T], error) {
	if err := q.made().at.Misuse(); err != nil {
		return nil, errs.Wrap("receive", q.at.Path, err)
	}
	d := &Delivery[T]{q: q}
	l, err := q.raw.Claims.Get(ctx, false, func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error) {
		ctx, cancel := q.at.Bounded(ctx)
		defer cancel()
		return q.raw.Claims.Queue().Claim(ctx, lost, func(ctx context.Context, e *zkconn.Epoch) (string, int64, error) {
			made, err := q.raw.Known(ctx, e)
			if err != nil {
				return "", 0, err
			}
			err = q.next(ctx, e, made, func(c elements.Content) error { return d.receive(ctx, e, c) })
			return d.claim.Name, d.claim.Czxid, err
		})
	})
	if err != nil {
		return nil, errs.Wrap("receive", q.at.Path, err)
	}
	d.hold(l)
	return d, nil
}

// receive claims an element, or removes it if it cannot be decoded.
func (d *Delivery[T]) receive(ctx context.Context, e *zkconn.Epoch, c elements.Content) (err error) {
	var undecodable error
	if d.Value, undecodable = d.q.decode(c); undecodable != nil {
		if err := d.q.raw.Remove(ctx, e, c); err != nil {
			return err
		}
		return undecodable
	}
	d.claim, err = d.q.raw.Claim(ctx, e, c)
	d.Attempt = int(d.claim.Attempt)
	return err
}

func (d *Delivery[T]) hold(l *lease.Lease) {
	d.lease = l
	d.q.raw.Hold(d.claim, l)
	d.unwatch = context.AfterFunc(l.Lifetime(), func() { d.q.raw.Drop(d.claim, true) })
}

// Lease is the lease on the element, with its fencing token: the tokens of later deliveries are greater. It is lost when
// the session is, and then the element comes again, to anybody. Unlock gives the element back, like Nack.
func (d *Delivery[T]) Lease() *zksync.Lease { return (*zksync.Lease)(d.lease) }

// Ack says that the work is done: the element is removed, and never comes again.
//
// It blocks until the servers confirm. If ctx ends, the error wraps the context's error, and satisfies zksync.Ambiguous
// unless ctx had ended before the call, which then does nothing; the request goes on as long as the session
// lives. It waits through disconnects. If the lease was lost, or is lost before the servers have confirmed, the error is
// zksync.ErrLost: the element comes again, or has come already; if the outcome is not known, the error satisfies
// zksync.Ambiguous, too. After Ack or Nack, or when the session was closed, it is zksync.ErrReleased. It costs one request.
func (d *Delivery[T]) Ack(ctx context.Context) error { return d.end(ctx, "ack", true) }

// Nack gives the element back: it comes again at its place, with the next Attempt, to anybody. It blocks and fails like
// Ack; after an error the element comes again, too, at the latest with the end of the session. It costs one request.
func (d *Delivery[T]) Nack(ctx context.Context) error { return d.end(ctx, "nack", false) }

func (d *Delivery[T]) end(ctx context.Context, op string, ack bool) error {
	err := d.begin(ctx, ack)
	if err == nil {
		t := d.lease.Ticket()
		err = d.q.raw.End(ctx, t.Epoch, d.claim, ack, t.Forget)
	}
	return errs.Wrap(op, d.q.at.Path, err)
}

// begin ends the lease, if it has not ended: of several calls one does. From then on nobody else deletes the claim.
func (d *Delivery[T]) begin(ctx context.Context, ack bool) error {
	l := d.lease
	if err := l.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errs.OfContext(ctx)
	}
	if t := l.Ticket(); !t.Epoch.Valid() || t.Over() {
		if l.Finish(errs.ErrLost) {
			d.q.raw.Claims.Release(l, 0)
		}
		return l.Err()
	}
	if ack {
		d.unwatch() // nothing comes free, so the view stays
		d.q.raw.Hold(d.claim, nil)
	}
	if !l.Finish(errs.ErrReleased) {
		d.q.raw.Drop(d.claim, true)
		return l.Err()
	}
	l.Ticket().Retire()
	return nil
}
