package zklatch_test

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A report is written when all three shards of last night's import are there.
func ExampleLatch() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	shards := zklatch.New(s, "/imports/2026-11-20", 3)
	for range 3 { // three workers, in three processes
		go func() { _ = shards.CountDown(ctx) }()
	}
	err = shards.Wait(ctx)
	left, _ := shards.Count(ctx)
	fmt.Println(err, left)
	fmt.Println(shards.State(ctx))
	// Output:
	// <nil> 0
	// /imports/2026-11-20: latch, open: all of 3 events counted down <nil>
}

// Workers hold while the database is being moved.
func ExampleGate() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	gate := zklatch.NewGate(s, "/gates/database")
	fmt.Println(gate.Close(ctx))
	held := make(chan error)
	go func() { held <- gate.Wait(ctx) }()
	fmt.Println(gate.Open(ctx))
	fmt.Println(<-held)
	fmt.Println(gate.State(ctx))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// /gates/database: gate, open <nil>
}

func ExampleWithEphemeral() {
	counts := zklatch.WithEphemeral() // a worker that dies has not counted
	fmt.Println(counts != nil)
	// Output: true
}
