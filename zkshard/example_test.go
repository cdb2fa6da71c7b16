package zkshard_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A list of one ensemble becomes one of two, in two rollouts.
func Example() {
	one, two := zktest.Start(), zktest.Start()
	defer one.Close()
	defer two.Close()
	if err := errors.Join(one.Listen("127.0.0.1:0"), two.Listen("127.0.0.1:0")); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	before, after := []string{one.Addr()}, []string{one.Addr(), two.Addr()}
	connect := func(servers []string, opts ...zksync.SessionOption) *zkshard.Shards {
		s, err := zkshard.Connect(ctx, servers, opts...)
		if err != nil {
			panic(err)
		}
		return s
	}

	old := connect(before)
	_, err := zkshard.Connect(ctx, after)
	fmt.Println("without WithMoving it is refused:", errors.Is(err, zksync.ErrMisuse))

	moving := connect(after, zkshard.WithMoving(before)) // the first rollout
	fmt.Println(old.Close())

	next := connect(after) // the second one
	fmt.Println(moving.Close())
	defer next.Close()

	leases, err := next.NewMutex("/locks/order-4711").LockContext(ctx)
	if err != nil {
		panic(err)
	}
	defer leases.Unlock()
	fmt.Println("held:", leases.Valid())
	// Output:
	// without WithMoving it is refused: true
	// <nil>
	// <nil>
	// held: true
}
