package zkbarrier_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Three workers import a day's files in steps: nobody begins a step before all are there, and nobody goes on
// to the next, which reads what this one wrote, before all have finished.
func ExampleDoubleBarrier() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()

	var done atomic.Int32
	var workers sync.WaitGroup
	for range 3 { // in three processes
		workers.Go(func() {
			s, err := zksync.Connect(ctx, srv.Addr())
			if err != nil {
				fmt.Println(err)
				return
			}
			defer s.Close()
			step := zkbarrier.NewDoubleBarrier(s, "/import/2026-11-20/step", 3)
			for n := int32(1); n <= 2; n++ {
				if err := step.Enter(ctx); err != nil {
					fmt.Println(err)
					return
				}
				done.Add(1)
				if err := step.Leave(ctx); err != nil {
					fmt.Println(err)
					return
				}
				if done.Load() < 3*n {
					fmt.Println("went on before all had finished step", n)
				}
			}
		})
	}
	workers.Wait()
	fmt.Println(done.Load(), "parts done in two steps")
	// Output: 6 parts done in two steps
}

// A worker that is late, or down, must not hold up the others for ever.
func ExampleDoubleBarrier_Enter() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	night := zkbarrier.NewDoubleBarrier(s, "/reports/night", 2)
	ctx, cancel := context.WithCancel(context.Background()) // context.WithTimeout, in earnest
	cancel()
	err = night.Enter(ctx)
	fmt.Println(err)
	fmt.Println(night.State(context.Background()))
	// Output:
	// zkbarrier: enter /reports/night: context canceled
	// /reports/night: double barrier, 0 of 2 have arrived <nil>
}
