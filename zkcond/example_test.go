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
	// Output: took one, 2 left
}

// The form with leases: it knows of deadlines, and each hold has a token of its own.
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

	lease, err := m.LockContext(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	again, err := delivered.WaitContext(ctx, lease)
	fmt.Println(err)
	fmt.Println(lease.Err())
	if again != nil { // the lock is held again, under a greater token
		fmt.Println(again.Token().Compare(lease.Token()))
		_ = again.Unlock()
	}
	// Output:
	// zksync: wait /conds/delivered: context deadline exceeded
	// zksync: lease released
	// 1
}
