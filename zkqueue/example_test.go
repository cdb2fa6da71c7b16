package zkqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

// Workers handle two mails at a time. What fails again and again becomes a dead letter, which an operator puts into the queue again
// when its cause is gone.
func ExampleQueue_Work() {
	srv := zktest.Start()
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	mails := zkqueue.New[string](s, "/queues/mails")
	_ = mails.PutAll(ctx, []string{"alice", "bob", "nobody"})
	var left atomic.Int32
	left.Store(3)
	send := func(ctx context.Context, d *zkqueue.Delivery[string]) error {
		defer func() {
			if left.Add(-1) == 0 {
				cancel() // usually a signal does that
			}
		}()
		if d.Value == "nobody" {
			return errors.New("no such address")
		}
		return nil
	}
	fmt.Println(mails.Work(ctx, 2, send, zkqueue.WithMaxAttempts(1)))

	ctx = context.Background()
	for d, err := range mails.Dead().All(ctx) {
		fmt.Println(string(d.Data), d.Err, d.Attempts, err)
		fmt.Println(mails.Dead().Redrive(ctx, d.ID))
	}
	fmt.Println(mails.Take(ctx))
	// Output:
	// <nil>
	// "nobody" no such address 1 <nil>
	// <nil>
	// nobody <nil>
}
