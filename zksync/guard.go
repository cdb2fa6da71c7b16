package zksync

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Guard runs ZooKeeper operations as one transaction that the servers apply only if
// this lease still holds: it begins with a check of the lease's own node. So a write
// of a holder that was paused or cut off is refused, even from its own connection.
// The operations are those of zk.Conn.Multi (*zk.CreateRequest, *zk.SetDataRequest,
// *zk.DeleteRequest, *zk.CheckVersionRequest), with paths of the session (below its
// chroot); they are not modified. The results are theirs, in order.
//
// It returns ErrLost if the node is gone or the lease was lost, ErrReleased after
// Unlock, ErrMisuse for an operation of another type, and the servers' error if one
// of the operations fails: then nothing was applied, and Op and Path of the *Error are that
// operation's ("guarded create", for instance). If the connection is lost
// meanwhile, nobody knows: the error satisfies [Ambiguous]. It blocks until the
// servers answer, through a disconnect before the request is sent, and no longer
// than the lease lives.
func (l *Lease) Guard(ops ...any) ([]zk.MultiResponse, error) {
	res, err := l.guardWithin(context.Background(), ops)
	if err == nil {
		return res, nil
	}
	if refused, ok := err.(*zkconn.TxnError); ok { // not one inside an error that says less
		op, path := nameOf(ops[refused.Index])
		return nil, &Error{Op: "guarded " + op, Path: path, Err: refused.Err}
	}
	return nil, &Error{Op: "guard", Path: l.at.path, Err: err}
}

// nameOf names an operation that can be guarded, and the path that it is about.
func nameOf(op any) (name, path string) {
	switch r := op.(type) {
	case *zk.CreateRequest:
		return "create", r.Path
	case *zk.SetDataRequest:
		return "set", r.Path
	case *zk.DeleteRequest:
		return "delete", r.Path
	case *zk.CheckVersionRequest:
		return "check", r.Path
	}
	return "", ""
}

// guardWithin is Guard for a caller with a context: when that ends after the request was sent,
// nobody knows. An operation that the servers refuse is a *zkconn.TxnError, with its index in ops.
func (l *Lease) guardWithin(ctx context.Context, ops []any) ([]zk.MultiResponse, error) {
	if l.nested != nil {
		if err := l.Err(); err != nil {
			return nil, err
		}
		// The books of transactions under way are the hold's.
		return l.nested.outer.guardWithin(ctx, ops)
	}
	s := l.at.s
	all := []any{&zk.CheckVersionRequest{Path: l.p.Node, Version: -1}}
	for _, op := range ops {
		placed, err := s.placed(op)
		if err != nil {
			return nil, err
		}
		all = append(all, placed)
	}
	if err := l.beginGuard(); err != nil {
		return nil, err
	}
	defer l.endGuard()
	both, cancel := context.WithCancelCause(l.ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	res, err := l.transact(both, all)
	var refused *zkconn.TxnError
	switch {
	case err == nil:
		return s.unplaced(res[1:]), nil
	case errors.Is(err, errNotYet) && ctx.Err() != nil && l.Err() == nil:
		return nil, errs.OfContext(ctx)
	case errors.Is(err, errNotYet):
		return nil, l.endedWith(zkconn.ErrOver)
	case ctx.Err() != nil && l.Err() == nil:
		return nil, errs.MarkAmbiguous(errs.OfContext(ctx))
	case zkconn.Unknown(err):
		return nil, errs.MarkAmbiguous(err)
	case errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, zk.ErrNoNode):
		l.p.Vanished()
		return nil, ErrLost
	case errors.As(err, &refused) && refused.Index > 0:
		return nil, &zkconn.TxnError{Index: refused.Index - 1, Err: refused.Err}
	case errors.As(err, &refused):
		return nil, refused.Err
	case errors.Is(err, zkconn.ErrOver), l.ctx.Err() != nil:
		// The request may have been applied while the lease was still held.
		return nil, errs.MarkAmbiguous(l.endedWith(err))
	}
	return nil, errs.MarkAmbiguous(err)
}

// errNotYet means that the lease ended before the transaction could be sent.
var errNotYet = errors.New("zksync: not sent")

// transact sends a transaction as soon as there is a connection.
func (l *Lease) transact(ctx context.Context, ops []any) ([]zk.MultiResponse, error) {
	for pace := (node.Pace{}); ; {
		if l.p.Epoch.Await(ctx) != nil {
			return nil, errNotYet
		}
		l.p.Doubt()
		call := l.p.Epoch.StartMulti(ops...)
		res, err := call.Wait(ctx, l.p.Epoch)
		if call.Answered() {
			res, err = call.Result()
			if !zkconn.Unknown(err) {
				l.p.Certain()
			}
		}
		// Without an answer there is doubt for as long as there is the node: somewhere on
		// the way the request may lie and be applied under whoever holds the node by then.
		if !errors.Is(err, zkconn.ErrNotSent) {
			return res, err
		}
		if pace.Rest(ctx, l.p.Epoch) != nil {
			return nil, errNotYet
		}
	}
}

// endedWith is what the lease ended with; err if it did not.
func (l *Lease) endedWith(err error) error {
	if ended := l.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, zkconn.ErrOver) {
		return ErrLost
	}
	return err
}

// beginGuard counts the transaction in, so that an Unlock meanwhile gives the node
// up rather than hand it on: the transaction must not pass under the successor's
// hold of the same node.
func (l *Lease) beginGuard() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if !l.p.Epoch.Valid() {
		return ErrLost
	}
	l.guards++
	return nil
}

func (l *Lease) endGuard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guards--
}

// placed returns a copy of a request with its path moved below the chroot.
func (s *Session) placed(op any) (any, error) {
	switch r := op.(type) {
	case *zk.CreateRequest:
		c := *r
		c.Path = s.full(r.Path)
		return &c, nil
	case *zk.SetDataRequest:
		c := *r
		c.Path = s.full(r.Path)
		return &c, nil
	case *zk.DeleteRequest:
		c := *r
		c.Path = s.full(r.Path)
		return &c, nil
	case *zk.CheckVersionRequest:
		c := *r
		c.Path = s.full(r.Path)
		return &c, nil
	}
	return nil, fmt.Errorf("%w: a guarded operation of type %T; use the pointer types that zk.Conn.Multi takes", ErrMisuse, op)
}

// unplaced takes the chroot off the paths of created nodes.
func (s *Session) unplaced(res []zk.MultiResponse) []zk.MultiResponse {
	for i := range res {
		if res[i].String != "" {
			res[i].String = s.local(res[i].String)
		}
	}
	return res
}
