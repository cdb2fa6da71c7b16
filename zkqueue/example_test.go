package zkqueue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func ExampleQueue() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	mails := zkqueue.New[string](s, "/queues/mails")
	fmt.Println(mails.Put(ctx, "second"), mails.Put(ctx, "first", zkqueue.WithPriority(-1)), mails.Put(ctx, "later", zkqueue.WithDelay(time.Hour)))
	for range 2 {
		fmt.Println(mails.Take(ctx)) // another process does that
	}
	fmt.Println(mails.Len(ctx))
	fmt.Println(mails.State(ctx))
	// Output:
	// <nil> <nil> <nil>
	// first <nil>
	// second <nil>
	// 1 <nil>
	// /queues/mails: queue, 1 element <nil>
}

// A worker acknowledges what it has done. What it has not done comes again, also if its process dies.
func ExampleDelivery() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	type order struct{ Item string }
	orders := zkqueue.New[order](s, "/queues/orders", zkqueue.WithCapacity(1000))
	_ = orders.Put(ctx, order{"tea"})
	for range 2 {
		d, err := orders.Receive(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Value.Item, d.Attempt, d.Lease().Valid())
		if d.Attempt == 1 {
			fmt.Println(d.Nack(ctx)) // it could not be done
			continue
		}
		// The work is done: that must be said also if ctx has ended meanwhile.
		fmt.Println(d.Ack(context.WithoutCancel(ctx)))
	}
	// Output:
	// tea 1 true
	// <nil>
	// tea 2 true
	// <nil>
}
