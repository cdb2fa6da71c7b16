package zkelection

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// synced waits until the server has caught up with the leader. It is no error if the directory does
// not exist.
func synced(ctx context.Context, e *zkconn.Epoch, dir string) error {
	if err := e.Sync(ctx, dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}
