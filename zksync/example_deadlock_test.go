package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Two processes lock two paths in different orders. One of them fails, gives up what it holds, and begins again.
func ExampleWithDeadlockDetection() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()

	transfer := func(s *zksync.Session, from, to string, both *sync.WaitGroup) (deadlocks int) {
		for {
			l, err := zksync.NewMutex(s, from).LockContext(ctx)
			if err != nil {
				panic(err)
			}
			if deadlocks == 0 {
				both.Done()
				both.Wait() // each holds its first lock
			}
			err = zksync.NewMutex(s, to).Do(ctx, func(context.Context, *zksync.Lease) error { return nil })
			_ = l.Unlock()
			if !errors.Is(err, zksync.ErrDeadlock) {
				return deadlocks
			}
			deadlocks++
		}
	}

	var both, done sync.WaitGroup
	both.Add(2)
	counts := make([]int, 2)
	for i, paths := range [][2]string{{"/accounts/a", "/accounts/b"}, {"/accounts/b", "/accounts/a"}} {
		s, err := zksync.Connect(ctx, srv.Addr(), zksync.WithDeadlockDetection())
		if err != nil {
			panic(err)
		}
		defer s.Close()
		done.Go(func() { counts[i] = transfer(s, paths[0], paths[1], &both) })
	}
	done.Wait()
	fmt.Println(counts[0] + counts[1])
	// Output: 1
}
