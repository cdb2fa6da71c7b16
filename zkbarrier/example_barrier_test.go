package zkbarrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A nightly batch runs in steps. No worker may begin a step before all have ended the last one, and the
// results of each step are merged once, in between.
func ExampleBarrier() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()

	merged := 0
	merge := zkbarrier.WithAction(func(context.Context) error {
		merged++
		fmt.Println("merged the results of step", merged)
		return nil
	})
	var workers sync.WaitGroup
	for range 3 { // three processes, in real life
		workers.Go(func() {
			s, err := zksync.Connect(ctx, srv.Addr())
			if err != nil {
				fmt.Println(err)
				return
			}
			defer s.Close()
			steps := zkbarrier.NewBarrier(s, "/batch/2026-11-20/steps", 3, merge)
			for range 2 {
				// Work on this process's share of the step; then:
				if _, err := steps.Await(ctx); err != nil {
					fmt.Println(err) // somebody died or gave up: the step was not merged
					return
				}
			}
		})
	}
	workers.Wait()
	// Output:
	// merged the results of step 1
	// merged the results of step 2
}

// Whoever does not come in time breaks the barrier for all, until somebody resets it.
func ExampleBarrier_Reset() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	b := zkbarrier.NewBarrier(s, "/batch/steps", 2)
	impatient, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = b.Await(impatient)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	_, err = b.Await(ctx)
	fmt.Println(errors.Is(err, zksync.ErrBroken))
	fmt.Println(b.Reset(ctx))
	broken, err := b.Broken(ctx)
	fmt.Println(broken, err)
	// Output:
	// true
	// true
	// <nil>
	// false <nil>
}

// A worker that is restarted takes the place of the one that died.
func ExampleTolerant() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	b := zkbarrier.NewBarrier(s, "/batch/steps", 2, zkbarrier.Tolerant())
	leaving, cancel := context.WithCancel(ctx)
	cancel()
	_, err = b.Await(leaving)
	fmt.Println(errors.Is(err, context.Canceled))

	done := make(chan error)
	for range 2 {
		go func() { _, err := b.Await(ctx); done <- err }()
	}
	fmt.Println(<-done, <-done)
	// Output:
	// true
	// <nil> <nil>
}
