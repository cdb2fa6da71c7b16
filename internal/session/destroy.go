package session

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Destroy removes a record of the path. If the path was made with it, in the same transaction, and is empty now, it goes, too: it is a
// container, which the servers would remove later.
func (a *Access) Destroy(ctx context.Context, r record.Ruin) error {
	return a.Run(ctx, "destroy", func(ctx context.Context, e *zkconn.Epoch) error {
		if err := r.In(ctx, e); err != nil {
			return err
		}
		path := a.Full(a.Path)
		if st, there, err := e.Exists(ctx, path); err == nil && there && r.MadeWith(st) {
			_ = e.Delete(ctx, path) // at worst it removes another empty container
		}
		return nil
	})
}
