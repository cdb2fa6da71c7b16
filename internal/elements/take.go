package elements

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Content is what was read of an element.
type Content struct {
	Data []byte
	Node string // the path, as the session's user knows it

	Pick
	version int32 // counts its deliveries
}

// Read reads elements, all at once. If some are gone, or were claimed since the view was made, the error is ErrAgain, and all
// has the others.
func (q *Queue) Read(ctx context.Context, e *zkconn.Epoch, picks ...*Pick) (all []Content, err error) {
	paths := make([]string, len(picks))
	for i, p := range picks {
		paths[i] = q.node(p.name)
	}
	err = e.GetEach(ctx, paths, func(i int, c zkconn.Content) error {
		if p := picks[i]; p.since == 0 || c.Stat.Version == 0 || c.Stat.Mzxid <= p.since {
			all = append(all, Content{c.Data, q.at.Local(paths[i]), *picks[i], c.Stat.Version})
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
// the directory of the elements, and go behind those with a priority of 0 or less. So only who delivers an element
// with a priority above 0 must know of them.
func (q *Queue) unchanged(p Pick) (ops []any) {
	if p.known.claims != -1 {
		ops = append(ops, &zk.CheckVersionRequest{Path: q.dir("claims"), Version: p.known.claims})
	}
	if p.known.elements != -1 && p.priority > 0 {
		ops = append(ops, &zk.CheckVersionRequest{Path: q.dir("elements"), Version: p.known.elements})
	}
	return ops
}

// refused tells why the servers have refused a transaction that begins with so many checks of the order.
func refused(err error, checks int) error {
	for i := range checks {
		if record.RefusedAt(err, i, zk.ErrBadVersion) {
			return errOrder
		}
	}
	if record.Conflict(err) {
		return errTaken
	}
	return err
}

// free is what such a transaction checks of each element: that the claim of its last delivery is gone. A transaction
// cannot check that a node does not exist, but it can make the node and delete it. Earlier claims are gone: the later ones
// have checked that. The version of the element, which the transaction changes, says which delivery was the last.
func (q *Queue) free(c Content) (ops []any) {
	if c.version > 0 {
		last := q.dir("claims") + "/" + claimName(c.name, c.version)
		ops = append(ops, &zk.CreateRequest{Path: last, Acl: q.at.ACL()}, &zk.DeleteRequest{Path: last, Version: -1})
	}
	return ops
}

// Remove deletes elements of one view, all or none. The error is ErrAgain if one of them is claimed, or has changed.
func (q *Queue) Remove(ctx context.Context, e *zkconn.Epoch, all ...Content) error {
	ops := q.unchanged(all[len(all)-1].Pick) // the last one has the highest priority
	checks := len(ops)
	for _, c := range all {
		ops = append(ops, q.free(c)...)
		ops = append(ops, &zk.DeleteRequest{Path: q.node(c.name), Version: c.version})
	}
	_, err := q.apply(ctx, e, ops...)
	if err == nil {
		for _, c := range all {
			q.gone(c.name)
		}
	}
	return refused(err, checks)
}
