package queue_test

import (
	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zkqueue"
)

func guarded(d *zkqueue.Delivery[int], data string) error {
	_, err := d.Lease().Guard(&zk.SetDataRequest{Path: "/out", Data: []byte(data), Version: -1})
	return err
}
