package elements

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Ending is what becomes of an element at the end of a delivery. The zero Ending removes it.
type Ending struct {
	Dead bool   // it becomes a dead letter
	Why  string // of a dead letter

	Again    bool          // it is given back
	Delay    time.Duration // it does not come again before that
	Priority *int          // its new priority; nil for the old one
	Forgiven bool          // the delivery does not count as an attempt
}

// stays reports whether an element that is given back keeps its node.
func (h Ending) stays() bool { return h.Delay <= 0 && h.Priority == nil && !h.Forgiven }

// behind reports whether an element that is given back comes later than it would have, so that nothing needs to be written for the
// views of others. Such a view shows the element as free: then its object finds it gone there, and lists again soon; or as
// claimed by another, and then the view is used for a short time only (see View.meet); or not at all, because it was put after the
// listing, and then it has its place behind what the view shows.
func (h Ending) behind() bool { return h.Again && h.Delay > 0 && h.Priority == nil }

// ComesFree reports whether the element comes again before those that the view of this object shows.
func (h Ending) ComesFree() bool { return h.Again && !h.behind() }

// End ends a claim, and with it the delivery. It goes on when ctx has ended. ended is called once, when the outcome of the request is
// known, also after End has returned. If the claim was not there any more, the error is errs.ErrLost.
//
// Each ending is one transaction, which also deletes the claim. So the element is in the queue, or a dead letter, or gone, whatever
// becomes of the request.
func (q *Queue) End(ctx context.Context, e *zkconn.Epoch, c Claim, how Ending, ended func()) error {
	finish := func(err error) {
		ended()
		if err != nil {
			q.reap(e, q.claimPath(c.Name))
		}
		q.Drop(c, err != nil || how.ComesFree())
	}
	err := node.Outlive(ctx, e, func(ctx context.Context) error {
		err := q.call(ctx, e, false, c.life).end(c, how)
		if record.Conflict(err) || errors.Is(err, ErrChanged) {
			return errs.ErrLost
		}
		return err
	}, finish)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errs.MarkAmbiguous(errs.OfContext(ctx)) // it goes on
	}
	switch {
	case errs.Ambiguous(err): // the session has ended
		err = errs.MarkAmbiguous(errs.ErrLost)
	case errors.Is(err, zkconn.ErrOver): // before anything was sent
		err = errs.ErrLost
	case err != nil && !errors.Is(err, errs.ErrLost):
		err = node.Reason(ctx, err)
	}
	finish(err)
	return err
}

// end makes the transaction.
func (c *Call) end(cl Claim, how Ending) error {
	q := c.q
	ops := []any{&zk.DeleteRequest{Path: q.claimPath(cl.Name), Version: -1}}
	removal := &zk.DeleteRequest{Path: q.node(cl.name), Version: cl.delivery()}
	switch {
	case how.Dead:
		attempts := cl.Attempt()
		if how.Forgiven {
			attempts--
		}
		return c.bury(append(ops, removal), cl.Content, how.Why, attempts)
	case !how.Again:
		_, err := c.apply(append(ops, removal)...)
		if err == nil {
			q.gone(cl.name)
		}
		return err
	case how.stays():
		_, err := c.apply(append(ops, q.before())...)
		return err
	}
	return c.move(append(ops, removal), cl, how)
}

// before is what a transaction writes after which an element may go before those that views show.
func (q *Queue) before() any { return &zk.SetDataRequest{Path: q.dir("claims"), Version: -1} }

// move gives an element back in another node, because the name has the priority and the time when it is due, and its node's version
// counts every delivery. It has the place of the old one among those of its priority.
func (c *Call) move(ops []any, cl Claim, how Ending) (err error) {
	o := cl.origin()
	o.enqueued, o.deliveries = cl.enqueued(), o.deliveries+int(cl.delivery())
	if how.Forgiven {
		o.forgiven++
	}
	due, priority := int64(0), cl.priority
	if how.Delay > 0 {
		if due, err = c.dueSoon(how.Delay); err != nil {
			return err
		}
	}
	if how.Priority != nil {
		priority = *how.Priority
	}
	name := o.name(priority, due)
	ops = append(ops, &zk.CreateRequest{Path: c.q.node(name), Data: cl.Data, Acl: c.q.at.ACL()})
	if how.ComesFree() {
		ops = append(ops, c.q.before())
	}
	if _, err = c.apply(ops...); err == nil && how.behind() {
		c.q.comesLater(c.Epoch, name)
	}
	return err
}

// comesLater has the view of this object show an element that was given back with a delay. A view that was begun before is not kept.
func (q *Queue) comesLater(e *zkconn.Epoch, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended++
	el, ok := parseElement(name)
	if v := q.view; v != nil && v.e == e && ok && !el.exhausted() {
		v.ended, v.clock = q.ended, q.clock
		at, _ := slices.BinarySearchFunc(v.later, el, latestFirst)
		v.later = slices.Insert(v.later, at, el)
	} else {
		q.view = nil
	}
}
