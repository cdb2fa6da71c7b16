package zksync

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Verify asks the servers whether token is still that of a current holder of the
// lock at path: the check that a resource can make which cannot store tokens. It
// returns nil if it is, and ErrStale if the holder released, lost, or never held.
// The answer is the leader's as of some instant during the call; what happens
// after, only [Fence] and [Lease.Guard] can rule out. Local hand-overs, the
// token's Seq, are not known to the servers and not compared.
//
// It blocks for a Sync, a listing and one read per holder, through disconnects,
// until ctx ends or the session is closed.
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
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	q := &queue{s: s, dir: s.full(path)}
	for {
		e, err := s.client.Epoch(ctx)
		if err != nil {
			return wrap(q.failure(ctx, err))
		}
		holds, err := q.holds(ctx, e, token)
		switch {
		case err == nil && holds:
			return nil
		case err == nil:
			return wrap(ErrStale)
		case errors.Is(err, zkconn.ErrOver):
		default:
			return wrap(q.failure(ctx, err))
		}
	}
}

// holds looks for a holder whose node was created by the token's transaction.
func (q *queue) holds(ctx context.Context, e *zkconn.Epoch, token Token) (bool, error) {
	if err := e.Sync(ctx, q.dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	names, _, err := e.Children(ctx, q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	entries, err := q.entries(ctx, e, names, nil)
	if err != nil {
		return false, err
	}
	for i, en := range entries {
		if len(policyFor(en.kind, unlimited)(entries[:i], en)) > 0 {
			continue
		}
		zxid, err := q.zxidOf(ctx, e, en)
		if err != nil {
			return false, err
		}
		if zxid == token.Zxid {
			return true, nil
		}
	}
	return false, nil
}

// zxidOf is the zxid in the token of an entry that holds, 0 if it has left. That of a
// reader may be a writer's, whose place it took.
func (q *queue) zxidOf(ctx context.Context, e *zkconn.Epoch, en entry) (int64, error) {
	node := q.dir + "/" + en.name
	if en.kind == KindRead {
		data, _, err := e.Get(ctx, node)
		if t := decodeExtras(data).token; err == nil && !t.IsZero() {
			return t.Zxid, nil
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
			return 0, err
		}
	}
	st, there, err := e.Exists(ctx, node)
	if err != nil || !there {
		return 0, err
	}
	return st.Czxid, nil
}
