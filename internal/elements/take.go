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

// Read reads elements, all at once. If some are gone, the error is ErrAgain, and all has the others.
func (q *Queue) Read(ctx context.Context, e *zkconn.Epoch, picks ...*Pick) (all []Content, err error) {
	paths := make([]string, len(picks))
	for i, p := range picks {
		paths[i] = q.node(p.name)
	}
	err = e.GetEach(ctx, paths, func(i int, c zkconn.Content) error {
		all = append(all, Content{c.Data, q.at.Local(paths[i]), *picks[i], c.Stat.Version})
		return nil
	})
	if err == nil && len(all) < len(picks) {
		err = ErrAgain
	}
	return all, err
}

// unchanged is what a transaction checks that delivers elements of a view: that the view is still right.
func (q *Queue) unchanged(p Pick) (ops []any) {
	if p.order >= 0 {
		ops = append(ops, &zk.CheckVersionRequest{Path: q.dir("claims"), Version: p.order})
	}
	return ops
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
	ops := q.unchanged(all[0].Pick)
	for _, c := range all {
		ops = append(ops, q.free(c)...)
		ops = append(ops, &zk.DeleteRequest{Path: q.node(c.name), Version: c.version})
	}
	_, err := q.apply(ctx, e, ops...)
	if record.Conflict(err) {
		return ErrAgain
	}
	return err
}

// First tells which element is the next; nil if there is none. line says that others wait. The error ErrAgain says that
// the time that was asked for is too old by now to tell.
func (q *Queue) First(ctx context.Context, e *zkconn.Epoch) (p *Pick, line bool, err error) {
	q.mu.Lock()
	if v := q.view; v != nil && v.e == e {
		p, _, _ = v.Pop()
	}
	if p == nil {
		q.view = nil
	}
	before := q.ended
	q.mu.Unlock()
	if p != nil {
		return p, false, nil
	}
	v, err := q.Look(ctx, e)
	if err != nil {
		return nil, false, err
	}
	takers, there, err := e.Exists(ctx, q.dir("takers"))
	if err != nil {
		return nil, false, err
	}
	p, _, err = v.Pop()
	line = there && takers.NumChildren > 0
	q.mu.Lock()
	defer q.mu.Unlock()
	if v.clean && p != nil && !line && q.ended == before && len(v.free) > 0 {
		q.view = v
	}
	return p, line, err
}
