package elements

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Content is what was read of an element.
type Content struct {
	Data []byte
	Node string // the path, as the session's user knows it

	Pick
	version int32 // counts its deliveries since the node was made
	ctime   int64 // when that was
}

// Attempt is how often the element was delivered, with this time.
func (c Content) Attempt() int { return c.origin().attempts(c.version) + 1 }

// ID names the element as long as it is in the queue, and as a dead letter.
func (c Content) ID() string { return c.origin().id() }

// Enqueued is when the element was put, by the servers' clock.
func (c Content) Enqueued() time.Time { return time.UnixMilli(c.enqueued()) }

func (c Content) enqueued() int64 { return cmp.Or(c.origin().enqueued, c.ctime) }

// Read reads elements, all at once. If some are gone, or were claimed since the view was made, the error is ErrChanged, and all
// has the others.
func (c *Call) Read(picks ...*Pick) (all []Content, err error) {
	paths := make([]string, len(picks))
	for i, p := range picks {
		paths[i] = c.q.node(p.name)
	}
	err = c.Epoch.GetEach(c, paths, func(i int, now zkconn.Content) error {
		if p := picks[i]; p.since == 0 || now.Stat.Version == 0 || now.Stat.Mzxid <= p.since {
			all = append(all, Content{now.Data, c.q.at.Local(paths[i]), *picks[i], now.Stat.Version, now.Stat.Ctime})
		}
		return nil
	})
	if err == nil && len(all) < len(picks) {
		err = errGone
	}
	return all, err
}

// unchanged is what a transaction checks that delivers elements of a view: that no element may go before them by now.
//
// Those that are given back, and those with a priority below 0, write to the directory of the claims. All others write to
// the directory of the elements, and go behind those with a priority of 0 or less. So only a delivery of an element
// with a priority above 0 depends on them.
func (q *Queue) unchanged(p Pick) (ops []any) {
	if p.known.claims != -1 {
		ops = append(ops, &zk.CheckVersionRequest{Path: q.dir("claims"), Version: p.known.claims})
	}
	if p.known.elements != -1 && p.priority > 0 {
		ops = append(ops, &zk.CheckVersionRequest{Path: q.dir("elements"), Version: p.known.elements})
	}
	return ops
}

// refused is why the servers have refused a transaction that begins with so many checks of the order.
func refused(err error, checks int) error {
	for i := range checks {
		if record.RefusedAt(err, i, zk.ErrBadVersion) {
			return errOrder
		}
	}
	switch {
	case errors.Is(err, zk.ErrNotEmpty):
		return fmt.Errorf("%w: %w", errTaken, err)
	case record.Conflict(err):
		return errTaken
	}
	return err
}

// free is what such a transaction checks of each element: that the claim of its last delivery is gone. A transaction
// cannot check that a node does not exist, but it can make the node and delete it. Earlier claims are gone: the later ones
// have checked that. The version of the element, which the transaction changes, says which delivery was the last.
func (q *Queue) free(c Content) (ops []any) {
	if c.version > 0 {
		last := q.claimPath(claimName(c.name, c.version))
		ops = append(ops, &zk.CreateRequest{Path: last, Acl: q.at.ACL()}, &zk.DeleteRequest{Path: last, Version: -1})
	}
	return ops
}

// Remove deletes elements of one view, all or none. The error is ErrChanged if one of them is claimed, or has changed.
func (c *Call) Remove(all ...Content) error {
	ops := c.q.unchanged(all[len(all)-1].Pick) // the last one has the highest priority
	checks := len(ops)
	for _, el := range all {
		ops = append(ops, c.q.free(el)...)
		ops = append(ops, &zk.DeleteRequest{Path: c.q.node(el.name), Version: el.version})
	}
	_, err := c.apply(ops...)
	if err == nil {
		for _, el := range all {
			c.q.gone(el.name)
		}
	}
	return refused(err, checks)
}

// Claim is a claim that was made.
type Claim struct {
	Content        // of the element, as it was read before
	Name    string // of its node
	Czxid   int64
	life    string // of the queue
}

// delivery is the version of the element's node since the claim was made.
func (c Claim) delivery() int32 { return c.version + 1 }

func (q *Queue) claimPath(name string) string { return q.dir("claims") + "/" + name }

// Claim makes the claim of an element, in a goroutine that does not end with the call, with a Call of its own, whose context
// does not end either: so it is always known whether there is a claim, and whose. If the call has ended, the claim
// is given up. The error is ErrChanged if another call has the element.
func (c *Call) Claim(el Content) (Claim, error) {
	made := Claim{Content: el, Name: claimName(el.name, el.version+1), life: c.life}
	made.v = nil // a long delivery need not keep the view
	path := c.q.claimPath(made.Name)
	var czxid int64
	err := node.Outlive(c, c.Epoch, func(ctx context.Context) (err error) {
		czxid, err = c.q.call(ctx, c.Epoch, false, c.life).claim(el, path)
		return err
	}, func(err error) {
		if err == nil {
			c.q.reap(c.Epoch, path)
		}
	})
	if err != nil {
		return Claim{}, err // the goroutine may go on
	}
	made.Czxid = czxid
	return made, nil
}

// claim returns the czxid of the claim.
func (c *Call) claim(el Content, path string) (int64, error) {
	order := c.q.unchanged(el.Pick)
	ops := append(append(order, c.q.free(el)...),
		&zk.CreateRequest{Path: path, Data: c.q.at.Owner(), Acl: c.q.at.ACL(), Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: c.q.node(el.name), Data: el.Data, Version: el.version})
	res, err := c.apply(ops...)
	last := len(ops) - 1
	switch {
	case record.Conflict(err):
		return 0, refused(err, len(order))
	case errs.Ambiguous(err) && c.Epoch.Cause() != nil:
		return 0, zkconn.ErrOver // the claim has ended with the session
	case errs.Ambiguous(err): // the writer's node was removed externally: the claim shows whether it was made
	case err != nil:
		return 0, err
	case len(res) > last && res[last].Stat != nil:
		return res[last].Stat.Mzxid, nil // a transaction has one zxid
	}
	st, there, err := c.Epoch.Exists(c, path)
	switch {
	case err != nil:
		return 0, err
	case !there || st.EphemeralOwner != c.Epoch.ID():
		return 0, errTaken
	}
	return st.Czxid, nil
}

// reap has a claim removed. No other call has made a node of this name, or will.
func (q *Queue) reap(e *zkconn.Epoch, path string) {
	e.Reap(zkconn.Orphan{Dir: q.dir("claims"), Node: path})
}

// Hold notes the lease of a claim; nil if Ack has ended it, so that no other call gets the element. The end of the lease in
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
