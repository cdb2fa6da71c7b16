package elements

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Claim is a claim that was made.
type Claim struct {
	Name    string // of its node
	Czxid   int64
	Attempt int32 // how often the element was delivered, with this time; the version of its node

	element string // the name of its node
}

// Claim makes the claim of an element, in a goroutine that does not end with ctx: so it is always known whether
// there is a claim, and whom it belongs to. If the caller has gone, the claim is given up. The error is ErrAgain if
// somebody else has the element.
func (q *Queue) Claim(ctx context.Context, e *zkconn.Epoch, c Content) (Claim, error) {
	made := Claim{Name: claimName(c.name, c.version+1), Attempt: c.version + 1, element: c.name}
	path := q.dir("claims") + "/" + made.Name
	var czxid int64
	err := node.Outlive(ctx, e, func(ctx context.Context) (err error) {
		czxid, err = q.claim(ctx, e, c, path)
		return err
	}, func(err error) {
		if err == nil {
			q.reap(e, path)
		}
	})
	if err != nil {
		return Claim{}, err // the goroutine may go on
	}
	made.Czxid = czxid
	return made, nil
}

// claim returns the czxid of the claim.
func (q *Queue) claim(ctx context.Context, e *zkconn.Epoch, c Content, path string) (int64, error) {
	order := q.unchanged(c.Pick)
	ops := append(append(order, q.free(c)...),
		&zk.CreateRequest{Path: path, Data: q.at.Owner(), Acl: q.at.ACL(), Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: q.node(c.name), Data: c.Data, Version: c.version})
	res, err := q.apply(ctx, e, ops...)
	last := len(ops) - 1
	switch {
	case record.Conflict(err):
		return 0, refused(err, len(order))
	case errs.Ambiguous(err):
		return 0, zkconn.ErrOver // the session has ended, and the claim with it
	case err != nil:
		return 0, err
	case len(res) > last && res[last].Stat != nil:
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

// reap has a claim removed. Nobody else has made a node of this name, nor will.
func (q *Queue) reap(e *zkconn.Epoch, path string) {
	e.Reap(zkconn.Orphan{Dir: q.dir("claims"), Node: path})
}

// Hold notes the lease of a claim; nil if Ack has ended it, so that nobody else gets the element. The end of the lease in
// another way must lead to Drop: then the element comes again, before those that the view shows. The lease ends before the
// servers delete the claim. So a view that is made in between shows a claim whose lease has ended, and is not kept.
func (q *Queue) Hold(c Claim, l *lease.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held[c.Name] = l
}

// Drop forgets the lease of a claim that has ended, and the view if the element may be free.
func (q *Queue) Drop(c Claim, free bool) {
	q.mu.Lock()
	delete(q.held, c.Name)
	q.mu.Unlock()
	if free {
		q.Forget()
	}
}

// End deletes a claim, and the element with it (ack), or writes that the element is free: see View. It goes on when ctx
// has ended. ended is called once, with the outcome, when the request has one. If the claim was not
// there any more, the error is errs.ErrLost.
func (q *Queue) End(ctx context.Context, e *zkconn.Epoch, c Claim, ack bool, ended func()) error {
	path := q.dir("claims") + "/" + c.Name
	ops := []any{&zk.DeleteRequest{Path: path, Version: -1}}
	if ack {
		ops = append(ops, &zk.DeleteRequest{Path: q.node(c.element), Version: c.Attempt})
	} else {
		ops = append(ops, &zk.SetDataRequest{Path: q.dir("claims"), Version: -1})
	}
	finish := func(err error) {
		ended()
		if err != nil {
			q.reap(e, path)
		}
		q.Drop(c, err != nil || !ack)
	}
	err := node.Outlive(ctx, e, func(ctx context.Context) error {
		_, err := q.apply(ctx, e, ops...)
		if record.Conflict(err) || errors.Is(err, ErrAgain) {
			return errs.ErrLost
		}
		if err == nil && ack {
			q.gone(c.element)
		}
		return err
	}, finish)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
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
