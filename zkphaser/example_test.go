package zkphaser_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A batch job in steps: nobody begins to sort before all have loaded, and so on. After the last step the job is over.
func ExamplePhaser() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	steps := []string{"load", "sort", "merge"}
	report := zkphaser.WithOnAdvance(func(_ context.Context, phase, workers int) bool {
		fmt.Println(workers, "workers are done with", steps[phase])
		return phase == len(steps)-1
	})
	job := zkphaser.New(s, "/jobs/2026-11-20", report)
	if _, err := job.BulkRegister(ctx, 3); err != nil {
		fmt.Println(err)
		return
	}
	var workers sync.WaitGroup
	for range 3 { // in one process here
		workers.Go(func() {
			phase, err := job.Phase(ctx)
			for err == nil && phase >= 0 {
				// ... work on steps[phase] ...
				phase, err = job.ArriveAndAwaitAdvance(ctx)
			}
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	workers.Wait()
	fmt.Println(job.State(ctx))
	// Output:
	// 3 workers are done with load
	// 3 workers are done with sort
	// 3 workers are done with merge
	// /jobs/2026-11-20: phaser, terminated in phase 3 <nil>
}

// A process that is there for two steps only, and one that watches.
func ExamplePhaser_ArriveAndDeregister() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	worker := zkphaser.New(s, "/jobs/2026-11-20")
	fmt.Println(worker.Register(ctx))
	fmt.Println(worker.Arrive(ctx))
	fmt.Println(worker.ArriveAndDeregister(ctx))

	watching := zkphaser.New(s, "/jobs/2026-11-20")
	fmt.Println(watching.Terminated(ctx)) // nobody is left
	// Output:
	// 0 <nil>
	// 0 <nil>
	// 1 <nil>
	// true <nil>
}

func ExampleWithOnAdvance() {
	untilPhase3 := zkphaser.WithOnAdvance(func(_ context.Context, phase, registered int) bool {
		return phase == 3 || registered == 0
	})
	fmt.Println(zkphaser.New(nil, "/jobs/a", untilPhase3) != nil)
	// Output: true
}
