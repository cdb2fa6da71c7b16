package zkflight_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// profile is what a service keeps in its cache.
type profile struct {
	Name string
}

// An entry of a cache has expired, and a hundred instances of a service miss it at the same
// moment. One of them asks the database, and all get what it says.
func ExampleFlight() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()

	var queries atomic.Int32
	query := func(ctx context.Context) (profile, error) {
		queries.Add(1)
		// A query that takes its time. What writes would give zksync.LeaseFrom(ctx).Token() along.
		err := srv.WaitFor(ctx, func() bool { return len(srv.Children("/refills/user:42/flight")) == 100 })
		return profile{Name: "Grace"}, err
	}

	var instances []*zkflight.Flight[profile]
	for range 100 {
		s, err := zksync.Connect(ctx, srv.Addr())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close()
		instances = append(instances, zkflight.New[profile](s, "/refills"))
	}
	var all sync.WaitGroup
	var right atomic.Int32
	for _, f := range instances {
		all.Go(func() {
			p, err, shared := f.Do(ctx, "user:42", query)
			if err == nil && shared && p.Name == "Grace" {
				right.Add(1)
			}
		})
	}
	all.Wait()
	fmt.Println(queries.Load(), "query,", right.Load(), "instances served")
	fmt.Println(instances[0].State(ctx))
	fmt.Println(instances[0].KeyState(ctx, "user:42"))
	// Output:
	// 1 query, 100 instances served
	// /refills: flight, 1 key <nil>
	// /refills/user:42: flight key, nobody runs it <nil>
}

// With a channel, as in singleflight.
func ExampleFlight_DoChan() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	f := zkflight.New[int](s, "/reports")
	rows := f.DoChan(ctx, "today", func(context.Context) (int, error) { return 1234, nil })
	fmt.Println("meanwhile")
	r := <-rows
	fmt.Println(r.Val, r.Err, r.Shared)
	// Output:
	// meanwhile
	// 1234 <nil> false
}

// The data behind a key has changed: whoever asks from now on must not get the result of a
// run that began before.
func ExampleFlight_Forget() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	f := zkflight.New[string](s, "/prices")
	began, updated := make(chan struct{}), make(chan struct{})
	before := f.DoChan(ctx, "bread", func(context.Context) (string, error) {
		close(began)
		<-updated
		return "the old price", nil
	})
	<-began
	fmt.Println(f.Forget(ctx, "bread"))
	after := f.DoChan(ctx, "bread", func(context.Context) (string, error) { return "the new price", nil })
	close(updated)
	fmt.Println((<-before).Val, "and then", (<-after).Val)
	// Output:
	// <nil>
	// the old price and then the new price
}
