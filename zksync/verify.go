package zksync

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Verify asks the servers whether token belongs to a current holder of the lock, election or semaphore at
// path; if not, it returns ErrStale. Only [Fence] and [Lease.Guard] protect against a change after the
// answer. It does not compare the token's Seq.
func Verify(ctx context.Context, s *Session, path string, token Token) error {
	v := view(s, path)
	if token.IsZero() {
		v.Refuse(ErrStale)
	}
	q := lookAt(v.Session, path)
	return v.Run(ctx, "verify", func(ctx context.Context, e *zkconn.Epoch) error {
		held, err := holds(ctx, e, q, token)
		if err == nil && !held {
			err = ErrStale
		}
		return err
	}, session.Joined)
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
