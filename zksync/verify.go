package zksync

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Verify asks the servers whether token is still that of a current holder of the
// lock, election or semaphore at path: the check that a resource can make which cannot store tokens. It
// returns nil if it is, and ErrStale if the holder released, lost, or never held.
// The answer is the leader's as of some instant during the call, or of the moment before if
// the session is with the leader itself, which does not wait until it has applied what the
// others have. What happens after, only [Fence] and [Lease.Guard] can rule out. Local hand-overs, the
// token's Seq, are not known to the servers and not compared.
//
// It blocks for a Sync, a listing and one read per holder, for a semaphore one listing and one
// read more, through disconnects, until ctx ends or the session is closed. Once a semaphore had
// more permits than now, a request that waits and would have fitted then passes for a hold from
// that time, which nobody can tell from it; but only a granted request is told its token.
func Verify(ctx context.Context, s *Session, path string, token Token) error {
	wrap := func(err error) error { return &Error{Op: "verify", Path: path, Err: err} }
	if s == nil {
		return wrap(errs.ErrNoSession)
	}
	if err := node.ValidatePath(path); err != nil {
		return wrap(err)
	}
	if token.IsZero() {
		return wrap(ErrStale)
	}
	q := lookAt(s.inner(), path)
	held := false
	err := s.inner().In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		held, err = holds(ctx, e, q, token)
		return err
	})
	switch {
	case err != nil:
		return wrap(err)
	case !held:
		return wrap(ErrStale)
	}
	return nil
}

// holds looks for a holder whose node was created by the token's transaction.
func holds(ctx context.Context, e *zkconn.Epoch, q *queue.Queue, token Token) (bool, error) {
	if err := e.Sync(ctx, q.Dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	q, entries, err := q.Locate(ctx, e)
	if err != nil {
		return false, err
	}
	permits, err := q.Permits(ctx, e, entries)
	if err != nil {
		return false, err
	}
	for i, en := range entries {
		if len(queue.PolicyFor(en.Kind, permits.Ever())(entries[:i], en)) > 0 {
			continue
		}
		c, there, err := q.Contender(ctx, e, en)
		if err != nil {
			return false, err
		}
		if there && c.Token.Zxid == token.Zxid {
			return true, nil
		}
	}
	return false, nil
}
