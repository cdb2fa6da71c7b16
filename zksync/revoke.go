package zksync

import (
	"context"
	"path"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Revoke asks a contender of [Contenders] to release its lock: see [Lease.Revoked]. A waiter hears of it when
// it is granted. The request never reaches a later hold. If the contender has left, the error is ErrStale.
// Another library's contender is asked as Curator's Revoker does.
func Revoke(ctx context.Context, s *Session, contender Contender) error {
	v := view(s, contender.Node)
	en, ok := queue.ParseEntry(path.Base(contender.Node))
	if !ok {
		v.Refuse(errs.Misuse("not the node of a contender"))
	}
	q := session.NewAccess[Option]("zksync", s.inner(), path.Dir(contender.Node), nil).Queue("", en.Kind)
	return v.Run(ctx, "revoke", func(ctx context.Context, e *zkconn.Epoch) error {
		made, err := q.Ask(ctx, e, en)
		switch {
		case made == "":
		case err != nil:
			e.Reap(zkconn.Orphan{Dir: q.Dir, Node: made})
		default:
			dropWithEntry(s.inner(), e, q.Dir, en.Name, made)
		}
		return err
	}, session.Joined)
}

// dropWithEntry removes the node of a request when the entry of the contender is gone, or when the session is closed.
func dropWithEntry(s *session.Session, e *zkconn.Epoch, dir, entry, request string) {
	drop := func() { e.Reap(zkconn.Orphan{Dir: dir, Node: request}) }
	if !s.Spawn(func() {
		_ = record.UntilGone(s.Context(), e, dir+"/"+entry, 0, nil)
		drop()
	}) {
		drop()
	}
}
