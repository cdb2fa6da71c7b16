package zksemaphore_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Ten instances restart for a new version, two at a time in the whole cluster.
func ExampleWeighted() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	restarts := zksemaphore.NewWeighted(s, "/deploy/restarts", 2)
	var mu sync.Mutex
	down, most, restarted := 0, 0, 0
	leave := func() {
		mu.Lock()
		defer mu.Unlock()
		down++
		most = max(most, down)
	}
	comeBack := func() {
		mu.Lock()
		defer mu.Unlock()
		down--
		restarted++
	}
	var instances sync.WaitGroup
	for range 10 {
		instances.Go(func() {
			if err := restarts.Acquire(ctx, 1); err != nil {
				fmt.Println(err)
				return
			}
			defer restarts.Release(1)
			leave()
			comeBack()
		})
	}
	instances.Wait()
	fmt.Println(restarted, most <= 2)
	st, err := restarts.State(ctx)
	fmt.Println(st.Permits, err)
	// Output:
	// 10 true
	// 2 <nil>
}
