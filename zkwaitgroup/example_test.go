package zkwaitgroup_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// The partitions of a nightly import are loaded by workers in three processes; the report is written when all of them are
// done.
func ExampleWaitGroup() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	workers := zkwaitgroup.New(s, "/imports/2026-11-20/workers") // was: var workers sync.WaitGroup
	loaded := make(chan string, 3)
	for _, partition := range []string{"a", "b", "c"} {
		workers.Go(func() { loaded <- partition })
	}
	workers.Wait()
	fmt.Println(len(loaded), "partitions are loaded")
	fmt.Println(workers.State(ctx))
	// Output:
	// 3 partitions are loaded
	// /imports/2026-11-20/workers: wait group, no member is left <nil>
}

// One of two workers is cut off from the servers. The coordinator hears who, and has the work done again.
func ExampleWaitGroup_WaitContext() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	coordinator, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer coordinator.Close()
	worker, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer worker.Close()

	const path = "/imports/2026-11-20/workers"
	fmt.Println(zkwaitgroup.New(worker, path).AddContext(ctx, 1))
	srv.Expire(worker.ID()) // as when its process is killed

	workers := zkwaitgroup.New(coordinator, path)
	err = workers.WaitContext(ctx)
	var dead *zkwaitgroup.DeadMembersError
	fmt.Println(errors.As(err, &dead), len(dead.Members), dead.Members[0].N)

	again := workers.GoContext(ctx, func(context.Context) {}) // here, this time
	fmt.Println(again, workers.WaitContext(ctx))
	// Output:
	// <nil>
	// true 1 1
	// <nil> <nil>
}
