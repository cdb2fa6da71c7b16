package zkonce_test

import (
	"context"
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
		// ... which gives zkonce.Lease(ctx).Token() along with what it writes.
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
	// Output: hello, cluster
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
