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

// Verify asks the servers whether token is that of a current holder of the
// lock, election or semaphore at path. It is for a resource that cannot store tokens. It
// returns nil if it is, and ErrStale if the holder has released, lost, or never held.
//
// It blocks for the servers' answers, until ctx ends. Without a connection it waits; in a new session it asks again. If the
// session is closed, the error is ErrClosed. It costs a sync, a listing and one read for each holder; for a
// semaphore one listing and one read more.
//
// The answer is the leader's at some instant of the call. If
// the session is connected to the leader itself, the answer may be a moment older: the leader does not wait until it has applied
// what its followers have confirmed. Only [Fence] and [Lease.Guard] protect against a change after the answer. The
// token's Seq counts local hand-overs, which the servers do not know; it is not compared. If a semaphore has had
// more permits than now, a waiting request that would have fitted then counts as a holder: the two look the same.
// But only a granted request is told its token.
func Verify(ctx context.Context, s *Session, path string, token Token) error {
	wrap := func(err error) error { return &Error{Op: "verify", Path: path, Err: err} }
	if !s.inner().Opened() {
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
