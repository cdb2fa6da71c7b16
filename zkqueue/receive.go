package zkqueue

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Delivery is an element that was received. It is for one call of Ack or Nack; until then nobody else gets the
// element, as long as the lease is valid. Goroutines may share it.
type Delivery[T any] struct {
	Value T
	// Attempt is 1 for the first delivery of an element, and one more for each later one, to anybody.
	Attempt int

	q *Queue[T]
	d *delivery
}

// delivery is the part of a Delivery that does not depend on the type of the value.
type delivery struct {
	element, claim string // names of nodes
	version        int32  // of the element, as the claim has made it
	lease          *lease.Lease
	unwatch        func() bool // ends the watch for the end of the lease

	mu     sync.Mutex
	ended  bool // Ack or Nack was called
	acking bool // guarded by the queue's mu: Ack has ended the lease, and nobody else gets the element
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
	if q.misuse != nil {
		return nil, errs.Wrap("receive", q.path, q.misuse)
	}
	var r *Delivery[T]
	l, err := q.claims.Get(ctx, false, func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error) {
		ctx, cancel := q.at.Bounded(ctx)
		defer cancel()
		return q.claims.Queue().Claim(ctx, lost, func(ctx context.Context, e *zkconn.Epoch) (string, int64, error) {
			if _, err := q.terms.Known(ctx, e); err != nil {
				return "", 0, err
			}
			var czxid int64
			err := q.next(ctx, e, func(c content) (err error) {
				r, czxid, err = q.claim(ctx, e, c)
				return err
			})
			if err != nil {
				return "", 0, err
			}
			return r.d.claim, czxid, nil
		})
	})
	if err != nil {
		return nil, errs.Wrap("receive", q.path, err)
	}
	q.hold(r.d, l)
	return r, nil
}

// hold remembers a delivery. When its lease ends in another way than by Ack, the element comes again, before those
// that the view shows. The lease ends before the servers delete the claim. So a view that is made in between
// shows the claim of a delivery that is not held, and is not kept.
func (q *Queue[T]) hold(d *delivery, l *lease.Lease) {
	d.lease = l
	q.mu.Lock()
	q.held[d.claim] = d
	q.mu.Unlock()
	d.unwatch = context.AfterFunc(l.Lifetime(), func() { q.drop(d, true) })
}

// drop forgets a delivery that has ended, and the view if the element may be free.
func (q *Queue[T]) drop(d *delivery, free bool) {
	q.mu.Lock()
	delete(q.held, d.claim)
	q.mu.Unlock()
	if free {
		q.forget()
	}
}

// claim makes the claim of an element, in a goroutine that does not end with ctx: so it is always known whether
// there is a claim, and whom it belongs to. If the caller has gone, the claim is given up.
func (q *Queue[T]) claim(ctx context.Context, e *zkconn.Epoch, c content) (*Delivery[T], int64, error) {
	value, undecodable := codec.Decode[T](q.at.Settings.Codec, c.data, q.shown(c.name))
	if undecodable != nil {
		if err := q.remove(ctx, e, c); err != nil {
			return nil, 0, err
		}
		return nil, 0, undecodable
	}
	attempt := c.version + 1
	d := &delivery{element: c.name, claim: claimName(c.name, attempt), version: attempt}
	path := q.dir("claims") + "/" + d.claim
	var czxid int64
	err := outlive(ctx, e, func(ctx context.Context) (err error) {
		czxid, err = q.makeClaim(ctx, e, c, path)
		return err
	}, func(err error) {
		if err == nil {
			e.Reap(zkconn.Orphan{Dir: q.dir("claims"), Node: path}) // nobody else has made a node of this name, nor will
		}
	})
	if err != nil {
		return nil, 0, err // the goroutine may go on
	}
	return &Delivery[T]{Value: value, Attempt: int(attempt), q: q, d: d}, czxid, nil
}

// makeClaim returns the czxid of the claim.
func (q *Queue[T]) makeClaim(ctx context.Context, e *zkconn.Epoch, c content, path string) (int64, error) {
	ops := append(q.free(c),
		&zk.CreateRequest{Path: path, Data: q.at.Owner(), Acl: q.at.ACL(), Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: q.dir("elements") + "/" + c.name, Data: c.data, Version: c.version})
	res, made, err := q.apply(ctx, e, ops...)
	last := len(ops) - 1
	switch {
	case err == nil && made, record.Conflict(err):
		return 0, errTaken
	case errs.Ambiguous(err):
		return 0, zkconn.ErrOver // the session has ended, and the claim with it
	case err != nil:
		return 0, err
	case len(res) > last && res[last].Stat != nil && e.Ordered():
		return res[last].Stat.Mzxid, nil // a transaction has one zxid
	}
	st, there, err := e.Exists(ctx, path)
	switch {
	case err != nil:
		return 0, err
	case !there || st.EphemeralOwner != e.ID():
		return 0, errTaken
	}
	return st.Czxid, nil
}

// outlive runs f until it ends or the session does. If ctx ends first, it waits a little longer, then returns
// the error of ctx, and calls abandoned with the error of f when f has ended.
func outlive(ctx context.Context, e *zkconn.Epoch, f func(context.Context) error, abandoned func(error)) error {
	var mu sync.Mutex
	gone := false
	done := make(chan error, 1)
	if !e.Go(func() {
		err := f(context.WithoutCancel(ctx))
		mu.Lock()
		defer mu.Unlock()
		if done <- err; gone {
			abandoned(err)
		}
	}) {
		return zkconn.ErrOver
	}
	longer, cancel := node.Extend(ctx, node.Grace)
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-longer.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	select {
	case err := <-done:
		return err
	default:
		gone = true
		return context.Cause(ctx)
	}
}

// Lease is the lease on the element, with its fencing token: the tokens of later deliveries are greater. It is lost when
// the session is, and then the element comes again, to anybody. Unlock gives the element back, like Nack.
func (d *Delivery[T]) Lease() *zksync.Lease { return (*zksync.Lease)(d.d.lease) }

// Ack says that the work is done: the element is removed, and never comes again.
//
// It blocks until the servers confirm. If ctx ends, the error wraps the context's error, and satisfies zksync.Ambiguous
// unless ctx had ended before the call, which then does nothing; the request goes on as long as the session
// lives. It waits through disconnects. If the lease was lost, or is lost before the servers have confirmed, the error is
// zksync.ErrLost: the element comes again, or has come already; if the outcome is not known, the error satisfies
// zksync.Ambiguous, too. After Ack or Nack, or when the session was closed, it is zksync.ErrReleased. It costs one request.
func (d *Delivery[T]) Ack(ctx context.Context) error {
	return errs.Wrap("ack", d.q.path, d.q.end(ctx, d.d,
		&zk.DeleteRequest{Path: d.q.dir("elements") + "/" + d.d.element, Version: d.d.version}))
}

// Nack gives the element back: it comes again at its place, with the next Attempt, to anybody. It blocks and fails like
// Ack; after an error the element comes again, too, at the latest with the end of the session. It costs one request.
func (d *Delivery[T]) Nack(ctx context.Context) error {
	return errs.Wrap("nack", d.q.path, d.q.end(ctx, d.d,
		&zk.SetDataRequest{Path: d.q.dir("claims"), Version: -1})) // see view
}

// end deletes the claim, and makes another change with that.
func (q *Queue[T]) end(ctx context.Context, d *delivery, change any) error {
	_, acks := change.(*zk.DeleteRequest)
	if err := q.begin(ctx, d, acks); err != nil {
		return err
	}
	t := d.lease.Ticket()
	e := t.Epoch
	finish := func(err error) {
		t.Forget()
		if err != nil { // nobody else has made a node of this name, nor will
			e.Reap(zkconn.Orphan{Dir: q.dir("claims"), Node: t.Node})
		}
		q.drop(d, err != nil || !acks)
	}
	err := outlive(ctx, e, func(ctx context.Context) error {
		_, made, err := q.apply(ctx, e, &zk.DeleteRequest{Path: t.Node, Version: -1}, change)
		if err == nil && made || record.Conflict(err) || errors.Is(err, zkconn.ErrOver) {
			return errs.ErrLost
		}
		return err
	}, finish)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return errs.MarkAmbiguous(errs.OfContext(ctx)) // it goes on
	}
	if errs.Ambiguous(err) {
		err = errs.MarkAmbiguous(errs.ErrLost) // the session has ended
	}
	finish(err)
	return err
}

// begin ends the lease, if this is the first call of Ack or Nack and the lease has not ended. From then on nobody else
// deletes the claim.
func (q *Queue[T]) begin(ctx context.Context, d *delivery, acks bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lease
	switch err := l.Err(); {
	case d.ended:
		return errs.ErrReleased
	case err != nil:
		return err
	case ctx.Err() != nil:
		return errs.OfContext(ctx)
	}
	d.ended = true
	if t := l.Ticket(); !t.Epoch.Valid() || t.Over() {
		l.Finish(errs.ErrLost)
		q.claims.Release(l, 0)
		return errs.ErrLost
	}
	if acks {
		d.unwatch() // nothing comes free, so the view stays
		q.mu.Lock()
		d.acking = true
		q.mu.Unlock()
	}
	if !l.Finish(errs.ErrReleased) {
		q.drop(d, true)
		return l.Err()
	}
	l.Ticket().Retire()
	return nil
}
