package zkcond_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A worker that waits, under the lock, until there is stock; somebody else delivers.
func ExampleCond() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	stock := 0 // stands for something that both machines can see, and only the holder of the lock touches
	ready := make(chan *zkcond.Cond)
	go func() { // on another machine
		s, err := zksync.Connect(ctx, srv.Addr())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close()
		m := zksync.NewMutex(s, "/locks/stock")
		delivered := zkcond.New(m, "/conds/delivered") // was: sync.NewCond(&m)
		<-ready
		m.Lock()
		stock = 3
		delivered.Broadcast()
		m.Unlock()
	}()

	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	m := zksync.NewMutex(s, "/locks/stock")
	delivered := zkcond.New(m, "/conds/delivered")
	m.Lock()
	close(ready) // whoever delivers needs the lock, which Wait gives up
	for stock == 0 {
		delivered.Wait()
	}
	stock--
	fmt.Println("took one,", stock, "left")
	m.Unlock()
	fmt.Println(delivered.State(ctx))
	// Output:
	// took one, 2 left
	// /conds/delivered: condition, nobody waits, 0 signals not used up <nil>
}

// The forms with leases: they know of deadlines, and each hold has a token of its own.
func ExampleCond_WaitContext() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	m := zksync.NewMutex(s, "/locks/stock")
	delivered := zkcond.New(m, "/conds/delivered")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lease, err := m.LockContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	go m.Do(ctx, func(ctx context.Context, other *zksync.Lease) error { // when WaitContext has given up the lock
		return delivered.SignalContext(ctx, other)
	})
	again, err := delivered.WaitContext(ctx, lease)
	fmt.Println(err)
	fmt.Println(lease.Err())
	if again != nil { // the lock is held again, under a greater token; after a deadline it may be somebody else's
		fmt.Println(again.Token().Compare(lease.Token()))
		_ = again.Unlock()
	}
	// Output:
	// <nil>
	// zksync: lease released
	// 1
}
