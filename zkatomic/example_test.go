package zkatomic_test

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// session opens a session on a server in this process.
func session() (s *zksync.Session, end func()) {
	srv := zktest.Start()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		panic(err)
	}
	return s, func() { s.Close(); srv.Close() }
}

// Invoices are numbered by all processes together.
func ExampleInt64() {
	s, end := session()
	defer end()
	last := zkatomic.NewInt64(s, "/invoices/last")
	for range 3 {
		n, err := last.Add(context.Background(), 1)
		fmt.Println(n, err)
	}
	fmt.Println(last.State(context.Background()))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
	// /invoices/last: counter, 3 <nil>
}

// A configuration is changed by whoever may, and read by all.
func ExampleValue() {
	type config struct{ Limit, Burst int }
	s, end := session()
	defer end()
	ctx := context.Background()
	v := zkatomic.NewValue[config](s, "/config")
	if err := v.Store(ctx, config{10, 20}); err != nil {
		fmt.Println(err)
		return
	}
	now, err := v.Update(ctx, func(old config, ok bool) (config, error) {
		old.Limit *= 2
		return old, nil
	})
	fmt.Println(now, err)
	swapped, err := v.CompareAndSwap(ctx, config{10, 20}, config{})
	fmt.Println(swapped, err)
	st, err := v.State(ctx)
	fmt.Println(st.State, err)
	// Output:
	// {20 20} <nil>
	// false <nil>
	// value <nil>
}

// A service follows its configuration.
func ExampleSnapshot() {
	s, end := session()
	defer end()
	ctx := context.Background()
	v := zkatomic.NewValue[string](s, "/mode")
	if err := v.Store(ctx, "fast"); err != nil {
		fmt.Println(err)
		return
	}
	for now, err := range v.Watch(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(now.Value, now.OK)
		if now.Value == "safe" {
			return
		}
		if err := v.Store(ctx, "safe"); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// fast true
	// safe true
}

// A form is saved only if nothing has changed since it was shown.
func ExampleValue_StoreIf() {
	s, end := session()
	defer end()
	ctx := context.Background()
	v := zkatomic.NewValue[string](s, "/banner")
	shown, err := v.LoadSnapshot(ctx)
	fmt.Printf("%q %t %v\n", shown.Value, shown.OK, err)
	fmt.Println(v.LoadOrStore(ctx, "closed on Monday")) // another process
	fmt.Println(v.StoreIf(ctx, shown.Version, "open"))
	shown, err = v.LoadSnapshot(ctx)
	fmt.Println(shown.Value, err)
	fmt.Println(v.StoreIf(ctx, shown.Version, "open"))
	// Output:
	// "" false <nil>
	// closed on Monday false <nil>
	// false <nil>
	// closed on Monday <nil>
	// true <nil>
}

// Numbers are unique, and reserved in blocks.
func ExampleSequence() {
	s, end := session()
	defer end()
	ids := zkatomic.NewSequence(s, "/ids", zkatomic.WithBlock(100))
	for range 3 {
		n, err := ids.Next(context.Background())
		fmt.Println(n, err)
	}
	fmt.Println(ids.State(context.Background()))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
	// /ids: sequence, 100 <nil>
}

// Each worker has a small number for itself, as long as it lives.
func ExampleSlots() {
	s, end := session()
	defer end()
	ctx := context.Background()
	workers := zkatomic.NewSlots(s, "/workers", 3)
	first, lease, err := workers.Acquire(ctx)
	fmt.Println(first, err)
	second, _, err := workers.Acquire(ctx)
	fmt.Println(second, err)
	fmt.Println(lease.Unlock())
	again, _, err := workers.Acquire(ctx)
	fmt.Println(again, err)
	fmt.Println(workers.State(ctx))
	// Output:
	// 0 <nil>
	// 1 <nil>
	// <nil>
	// 0 <nil>
	// /workers: slots, 2 of 3 slots taken <nil>
}
