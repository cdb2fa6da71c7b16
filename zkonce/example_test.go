package zkonce_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A schema migration that every instance of a service asks for when it starts.
func ExampleOnce_DoContext() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	migrate := func(ctx context.Context) ([]byte, error) {
		// ... which gives zksync.LeaseFrom(ctx).Token() along with what it writes.
		fmt.Println("migrating")
		return []byte("schema 42"), nil
	}
	for range 3 { // three instances
		result, err := zkonce.New(s, "/migrations/42").DoContext(ctx, migrate)
		fmt.Println(string(result), err)
	}
	// Output:
	// migrating
	// schema 42 <nil>
	// schema 42 <nil>
	// schema 42 <nil>
}

func ExampleOnce() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	once := zkonce.New(s, "/once/greeting") // was: var once sync.Once
	for range 3 {
		once.Do(func() { fmt.Println("hello, cluster") })
	}
	st, err := once.State(context.Background())
	fmt.Println(st.State, err)
	// Output:
	// hello, cluster
	// done <nil>
}

// A value that is computed once in the cluster.
func ExampleOnceValue() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	shards := zkonce.OnceValue(s, "/once/shards", func() int { return 16 })
	elsewhere := zkonce.OnceValue(s, "/once/shards", func() int { return 32 })
	fmt.Println(shards(), elsewhere())
	// Output: 16 16
}

// One process finds out where the primary database is, and all others wait for that.
func ExamplePromise() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	type address struct {
		Host string
		Port int
	}
	found := make(chan address)
	go func() { // in another process
		a, _ := zkonce.NewPromise[address](s, "/promises/primary").Wait(ctx)
		found <- a
	}()
	primary := zkonce.NewPromise[address](s, "/promises/primary")
	fmt.Println(primary.Complete(ctx, address{"db-1", 5432}))
	fmt.Println(<-found)
	fmt.Println(primary.Complete(ctx, address{"db-2", 5432}))
	fmt.Println(primary.State(ctx))
	// Output:
	// true <nil>
	// {db-1 5432}
	// false <nil>
	// /promises/primary: promise, complete <nil>
}

// What was promised will not come.
func ExampleFailure() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	report := zkonce.NewPromise[string](s, "/promises/report")
	fmt.Println(report.Fail(ctx, "the disk is full"))
	_, err = report.Wait(ctx)
	var failure *zkonce.Failure
	fmt.Println(errors.As(err, &failure), failure.Message)
	// Output:
	// true <nil>
	// true the disk is full
}
