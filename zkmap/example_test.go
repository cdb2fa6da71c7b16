package zkmap_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Partitions of a batch are given to workers: each to the first that asks.
func ExampleMap() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	owners := zkmap.New[int, string](s, "/batch/owners")
	owner, taken, err := owners.LoadOrStore(ctx, 7, "worker-1")
	fmt.Println(owner, taken, err)
	owner, taken, err = owners.LoadOrStore(ctx, 7, "worker-2")
	fmt.Println(owner, taken, err)
	handed, err := owners.CompareAndSwap(ctx, 7, "worker-1", "worker-2")
	fmt.Println(handed, err)
	err = owners.Range(ctx, func(partition int, owner string) bool {
		fmt.Println(partition, owner)
		return true
	})
	fmt.Println(err)
	fmt.Println(owners.State(ctx))
	// Output:
	// worker-1 false <nil>
	// worker-1 true <nil>
	// true <nil>
	// 7 worker-2
	// <nil>
	// /batch/owners: map, 1 key <nil>
}

// A counter for each user, and no update is lost.
func ExampleMap_Update() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	quota := zkmap.New[string, int](s, "/quota")
	for range 3 {
		left, err := quota.Update(ctx, "alice", func(used int, _ bool) (int, bool, error) {
			if used >= 2 {
				return 0, false, fmt.Errorf("%d requests were made", used)
			}
			return used + 1, true, nil
		})
		fmt.Println(left, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 0 zkmap: update /quota: 2 requests were made
}

// Services register, as long as they live.
func ExampleMap_StoreEphemeral() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	service, err := zksync.Connect(ctx, srv.Addr()) // another process
	if err != nil {
		fmt.Println(err)
		return
	}

	err = zkmap.New[string, string](service, "/services").StoreEphemeral(ctx, "tea-1", "10.0.0.7:80")
	fmt.Println(err)
	for at, err := range zkmap.New[string, string](s, "/services").WatchKey(ctx, "tea-1") {
		fmt.Println(at.Value, at.OK, err)
		if !at.OK {
			break
		}
		_ = service.Close()
	}
	// Output:
	// <nil>
	// 10.0.0.7:80 true <nil>
	//  false <nil>
}

// Prices are loaded in one go, and read in one go.
func ExampleMap_StoreMany() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	prices := zkmap.New[string, int](s, "/prices")
	err = prices.StoreMany(ctx, map[string]int{"assam": 5, "darjeeling": 8, "sencha": 7})
	fmt.Println(err)
	fmt.Println(prices.LoadMany(ctx, "assam", "sencha", "water"))
	var names []string
	for e, err := range prices.Entries(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		names = append(names, fmt.Sprint(e.Key, " ", e.Value))
	}
	slices.Sort(names)
	fmt.Println(names)
	// Output:
	// <nil>
	// map[assam:5 sencha:7] <nil>
	// [assam 5 darjeeling 8 sencha 7]
}

// Feature flags are looked up at every request of a web server, so they are read from a copy in memory.
func ExampleCache() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	flags := zkmap.New[string, bool](s, "/flags")
	_ = flags.Store(ctx, "dark-mode", true)
	cache, err := flags.Cached(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()
	on, known := cache.Load("dark-mode")
	fmt.Println(on, known, cache.Len())

	go func() { _ = flags.Store(ctx, "new-search", true) }() // another process
	for change, err := range cache.Changes(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if change.Key == "new-search" {
			fmt.Println(change.Kind == zkmap.Put, change.Value)
			break
		}
	}
	// Output:
	// true true 1
	// true true
}

// The files that were processed. Whoever adds a file first processes it.
func ExampleSet() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	done := zkmap.NewSet[string](s, "/import/files")
	for _, file := range []string{"a.csv", "b/c.csv", "a.csv"} {
		first, err := done.Add(ctx, file)
		fmt.Println(file, first, err)
	}
	var files []string
	for file, err := range done.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		files = append(files, file)
	}
	slices.Sort(files)
	fmt.Println(files)
	fmt.Println(done.State(ctx))
	// Output:
	// a.csv true <nil>
	// b/c.csv true <nil>
	// a.csv false <nil>
	// [a.csv b/c.csv]
	// /import/files: set, 2 keys <nil>
}
