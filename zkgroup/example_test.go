package zkgroup_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Servers tell each other where they are.
func ExampleGroup() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	g := zkgroup.New(s, "/groups/api")
	m, err := g.Join(ctx, zkgroup.Member{ID: "api-1", Data: []byte("10.0.0.1:80")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for view, err := range g.Watch(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, joined := range view.Joined {
			fmt.Printf("%s is at %s\n", joined.ID, joined.Data)
		}
		break
	}
	fmt.Println(g.State(ctx))
	fmt.Println(m.Leave(ctx))
	// Output:
	// api-1 is at 10.0.0.1:80
	// /groups/api: group, 1 member <nil>
	// <nil>
}

// The partitions of a batch are divided among the members.
func ExampleMembership() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	ctx := context.Background()
	g := zkgroup.New(s, "/batches/invoices")
	m, err := g.Join(ctx, zkgroup.Member{ID: "worker-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	partitions := []string{"A-H", "I-P", "Q-Z"}
	err = g.Assign(ctx, m, partitions, func(ctx context.Context, partition string, l *zksync.Lease) error {
		return nil // writes that are fenced with l.Token(), as long as ctx has not ended
	}, zkgroup.WithUntilDone())
	fmt.Println(err, m.ID())
	// Output: <nil> worker-1
}

// An item that fails is tried again, and the others go on. An error that would come again ends Assign.
func ExampleAssignOption() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	g := zkgroup.New(s, "/batches/reports")
	m, err := g.Join(ctx, zkgroup.Member{ID: "worker-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempts := 0
	err = g.Assign(ctx, m, []string{"monday"}, func(ctx context.Context, item string, l *zksync.Lease) error {
		if attempts++; attempts == 1 {
			return errors.New("the printer is out of paper")
		}
		return zkgroup.Stop(errors.New("the printer is gone"))
	}, zkgroup.WithItemErrors(func(item string, attempt int, err error) {
		fmt.Printf("%s, attempt %d: %v\n", item, attempt, err)
	}))
	fmt.Println(err)
	// Output:
	// monday, attempt 1: the printer is out of paper
	// zkgroup: assign /batches/reports: the printer is gone
}
