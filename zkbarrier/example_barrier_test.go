package zkbarrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

// A party that gives up breaks the barrier for all waiters, until a process resets it.
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

	b := zkbarrier.NewBarrier(s, "/batch/steps", 3)
	patient := make(chan error)
	go func() { _, err := b.Await(ctx); patient <- err }()
	impatient, giveUp := context.WithCancel(ctx) // context.WithTimeout, in earnest
	go func() {
		for n := 0; n < 2; { // who gives up before it has arrived breaks nothing
			n, _ = b.Waiting(ctx)
		}
		giveUp()
	}()
	_, err = b.Await(impatient)
	fmt.Println(errors.Is(err, context.Canceled))
	fmt.Println(errors.Is(<-patient, zksync.ErrBroken))
	fmt.Println(b.Reset(ctx))
	broken, err := b.Broken(ctx)
	fmt.Println(broken, err)
	fmt.Println(b.State(ctx))
	// Output:
	// true
	// true
	// <nil>
	// false <nil>
	// /batch/steps: barrier, 0 of 3 have arrived <nil>
}

// The error names the process that broke the barrier, and those that had come.
func ExampleBrokenError() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr(), zksync.WithName("loader-7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	b := zkbarrier.NewBarrier(s, "/batch/loaded", 3)
	arrived := make(chan error)
	go func() { _, err := b.Await(ctx); arrived <- err }()
	for n := 0; n < 1; {
		n, _ = b.Waiting(ctx)
	}
	fmt.Println(b.Reset(ctx))

	var broken *zkbarrier.BrokenError
	if errors.As(<-arrived, &broken) {
		fmt.Println(broken.Why, broken.By[0].Name)
		fmt.Println(broken.Count, "of", broken.Parties, broken.Arrived[0].Name)
	}
	// Output:
	// <nil>
	// reset loader-7
	// 1 of 3 loader-7
}
