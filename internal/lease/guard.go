package lease

import (
	"context"
	"errors"
	"reflect"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Guard is zksync.Lease.Guard.
func (l *Lease) Guard(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	res, err := l.GuardBare(ctx, ops)
	if err == nil {
		return res, nil
	}
	if refused, ok := err.(*zkconn.TxnError); ok { // not one inside an error that says less
		_, path, name := operation(ops[refused.Index])
		return nil, errs.Wrap("zksync", "guarded "+name, *path, refused.Err)
	}
	return nil, errs.Wrap("zksync", "guard", l.access.Path, err)
}

// operation returns a copy of op, a pointer to the path in the copy, which the caller
// may change, and the operation's name. It returns nil if op cannot be guarded.
func operation(op any) (request any, path *string, name string) {
	if v := reflect.ValueOf(op); v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, nil, ""
	}
	switch r := op.(type) {
	case *zk.CreateRequest:
		c := *r
		return &c, &c.Path, "create"
	case *zk.SetDataRequest:
		c := *r
		return &c, &c.Path, "set"
	case *zk.DeleteRequest:
		c := *r
		return &c, &c.Path, "delete"
	case *zk.CheckVersionRequest:
		c := *r
		return &c, &c.Path, "check"
	}
	return nil, nil, ""
}

// GuardBare is Guard, whose error is not wrapped: a *zkconn.TxnError, with the operation's index in ops, if the servers refuse an operation.
func (l *Lease) GuardBare(ctx context.Context, ops []any) ([]zk.MultiResponse, error) {
	if l.sublease != nil {
		if err := l.Err(); err != nil {
			return nil, err
		}
		return l.sublease.outer.GuardBare(ctx, ops)
	}
	s := l.access.Session
	// The transaction begins with a check that our node exists, so the servers apply it only while we hold.
	all := []any{&zk.CheckVersionRequest{Path: l.ticket.Node, Version: -1}}
	var made []zk.ACL
	for _, op := range ops {
		request, path, _ := operation(op)
		if request == nil {
			return nil, errs.Misuse("a guarded operation %T, or nil; use the pointer types that zk.Conn.Multi takes", op)
		}
		if set, ok := request.(*zk.SetDataRequest); ok && queue.Sealed(set.Path) {
			return nil, errs.Misuse("a write to %s, a node of a lock: whoever waits would take it for a release", errs.Quote(set.Path))
		}
		if create, ok := request.(*zk.CreateRequest); ok {
			made = append(made, create.Acl...)
		}
		*path = s.Full(*path)
		all = append(all, request)
	}
	if ctx.Err() != nil {
		if err := l.Err(); err != nil {
			return nil, err // ctx may be the lease's own, which ends after err is set: the caller is to hear of the loss
		}
		return nil, errs.OfContext(ctx)
	}
	if err := l.MarkSent(); err != nil {
		return nil, err
	}
	l.ticket.Epoch.KeepIdentityOut(made) // may cut the connection; then transact waits for the next
	// The wait ends with the lease and with the caller's context.
	both, cancel := context.WithCancelCause(l.UnwatchedContext())
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	res, err := l.transact(both, all)
	if err != nil {
		return nil, l.unguarded(ctx, err)
	}
	return unplaced(s, res[1:]), nil
}

// unguarded turns err, with which a transaction ended, into the error for a caller whose
// context is ctx. Either the transaction was not applied, or the error is marked as ambiguous.
func (l *Lease) unguarded(ctx context.Context, err error) error {
	gaveUp := ctx.Err() != nil && l.Err() == nil
	var refused *zkconn.TxnError
	known := errors.As(err, &refused) && !zkconn.Unknown(err)
	switch {
	case known && refused.Index == 0 && errors.Is(err, zk.ErrNoNode):
		l.ticket.End(queue.Removed, 0)
		return errs.ErrLost
	case known && refused.Index > 0: // in all that was sent, where the check stands first
		return &zkconn.TxnError{Index: refused.Index - 1, Err: refused.Err}
	case known:
		return refused.Err
	case errors.Is(err, errNotYet) && gaveUp:
		return errs.OfContext(ctx)
	case errors.Is(err, errNotYet):
		return l.endedWith(zkconn.ErrOver)
	case gaveUp:
		return errs.MarkAmbiguous(errs.OfContext(ctx))
	case zkconn.Unknown(err):
		return errs.MarkAmbiguous(err)
	case errors.Is(err, zkconn.ErrOver), l.Err() != nil:
		err = l.endedWith(err) // it may have been applied while the lease was still held
	}
	return errs.MarkAmbiguous(err)
}

// errNotYet means that the lease ended before the transaction could be sent.
var errNotYet = errors.New("zksync: not sent")

// transact sends a transaction that was marked as sent, as soon as there is a
// connection. If no answer comes, the transaction stays marked: the request
// may still be on its way, and can be applied as long as the node exists.
func (l *Lease) transact(ctx context.Context, ops []any) ([]zk.MultiResponse, error) {
	for pace := (node.Pace{}); ; {
		if l.ticket.Epoch.Await(ctx) != nil {
			l.Answered()
			return nil, errNotYet
		}
		call := l.ticket.Epoch.StartMulti(ops...)
		res, err := call.Wait(ctx, l.ticket.Epoch)
		if call.Answered() {
			res, err = call.Result() // also if ctx ended at the very same time
		}
		switch {
		case errors.Is(err, zkconn.ErrNotSent) && pace.Rest(ctx, l.ticket.Epoch) == nil:
			continue // the connection is lost, but Await may not have known that yet
		case errors.Is(err, zkconn.ErrNotSent):
			err = errNotYet
			fallthrough
		case call.Answered() && !zkconn.Unknown(err):
			l.Answered()
		}
		return res, err
	}
}

// MarkSent marks a transaction as sent, unless the lease has ended. From then on, until it
// is answered, Unlock gives the node up and does not hand it on: the transaction must not be
// applied under the successor's hold of the same node. No transaction is missed: Finish ends
// the lease under the same lock, and Release, which looks for marks, comes after Finish.
func (l *Lease) MarkSent() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if !l.ticket.Epoch.Valid() {
		return errs.ErrLost
	}
	l.ticket.Unanswered.Add(1)
	return nil
}

// Answered takes MarkSent back: the transaction has an answer, or was not sent.
func (l *Lease) Answered() { l.ticket.Unanswered.Add(-1) }

// endedWith is the error with which the lease ended. If it has not
// ended, it is err, or ErrLost in place of the end of the epoch.
func (l *Lease) endedWith(err error) error {
	if ended := l.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, zkconn.ErrOver) {
		return errs.ErrLost
	}
	return err
}

// unplaced takes the chroot off the paths of created nodes.
func unplaced(s *session.Session, res []zk.MultiResponse) []zk.MultiResponse {
	for i := range res {
		if res[i].String != "" {
			res[i].String = s.Local(res[i].String)
		}
	}
	return res
}
