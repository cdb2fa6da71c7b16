package zksync

import (
	"context"
	"errors"

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
		return wrap(errNoSession)
	}
	if err := validatePath(path); err != nil {
		return wrap(err)
	}
	if token.IsZero() {
		return wrap(ErrStale)
	}
	q := &queue{s: s, dir: s.full(path)}
	holds := false
	err := q.in(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		holds, err = q.holds(ctx, e, token)
		return err
	})
	switch {
	case err != nil:
		return wrap(err)
	case !holds:
		return wrap(ErrStale)
	}
	return nil
}

// holds looks for a holder whose node was created by the token's transaction.
func (q *queue) holds(ctx context.Context, e *zkconn.Epoch, token Token) (bool, error) {
	if err := e.Sync(ctx, q.dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	q, entries, err := q.locate(ctx, e)
	if err != nil {
		return false, err
	}
	terms, err := q.storedTerms(ctx, e, entries)
	if err != nil {
		return false, err
	}
	for i, en := range entries {
		if len(policyFor(en.kind, terms.most())(entries[:i], en)) > 0 {
			continue
		}
		c, there, err := q.contender(ctx, e, en)
		if err != nil {
			return false, err
		}
		if there && c.Token.Zxid == token.Zxid {
			return true, nil
		}
	}
	return false, nil
}
