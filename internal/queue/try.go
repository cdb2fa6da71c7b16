package queue

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Try lists the queue before it enters. So an attempt that finds the lock taken usually costs two reads, and
// makes no node behind which others would queue. The Sync comes first, so that the answer is as new as the
// leader's: a lock that was released before the call, by anybody, is found free. lost is as in [Queue.Obtain].
func (q *Queue) Try(ctx context.Context, lost func(*Ticket)) (*Ticket, error) {
	t, err := q.attempts(ctx, lost, node.Pace{}, func(e *zkconn.Epoch) (*Ticket, error) { return q.tryIn(ctx, e) })
	switch {
	case errors.Is(err, errs.ErrNotAcquired), errors.Is(err, ErrTooBig):
		return nil, errs.ErrNotAcquired
	case err != nil:
		return nil, node.Reason(ctx, err)
	}
	return t, nil
}

// tryIn makes one attempt in the session e. A ticket that it returns together with an error must be given up.
func (q *Queue) tryIn(ctx context.Context, e *zkconn.Epoch) (*Ticket, error) {
	if err := e.Sync(ctx, q.Dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	entries, err := q.list(ctx, e, func(names []string) ([]string, error) { return names, q.agree(names) }, nil)
	if err != nil {
		return nil, err
	}
	blockers, err := q.blockersNow(ctx, e, entries, Entry{Kind: q.Kind, Weight: q.Weight}) // of an entry at the tail
	if err == nil && len(blockers) > 0 {
		err = errs.ErrNotAcquired
	}
	if err != nil {
		return nil, err
	}
	q.Crowds.note(q.Dir, int32(len(entries))) // mostly small: then an entry need not be prepared for others
	t, err := q.enter(ctx, e, nil)
	if err != nil {
		return t, err
	}
	t.delayed.once = true
	if !t.inDoubt {
		return t, nil
	}
	ahead, blockers, err := newContest(t).list(ctx)
	switch {
	case err != nil:
	case len(blockers) > 0:
		err = errs.ErrNotAcquired // somebody was quicker
	default:
		t.sight.queued(len(ahead))
	}
	return t, err
}
