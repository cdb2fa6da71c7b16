package queue_test

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zkqueue"
)

func guarded(ctx context.Context, d *zkqueue.Delivery[int], data string) error {
	_, err := d.Lease().Guard(ctx, &zk.SetDataRequest{Path: "/out", Data: []byte(data), Version: -1})
	return err
}
