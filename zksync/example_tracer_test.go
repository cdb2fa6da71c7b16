package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// slowLocks reports what took long. It implements LossTracer as well, so it is
// told about losses too.
type slowLocks struct{ threshold time.Duration }

func (s slowLocks) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}

func (s slowLocks) AcquireEnd(_ context.Context, data zksync.AcquireEndData) {
	switch {
	case errors.Is(data.Err, zksync.ErrNotAcquired): // a try, not a wait
	case data.Err != nil:
		fmt.Printf("%s %s: gave up after %v: %v\n", data.Kind, data.Path, data.Waited, data.Err)
	case data.Waited > s.threshold:
		fmt.Printf("%s %s: waited %v\n", data.Kind, data.Path, data.Waited)
	}
}

func (s slowLocks) Lost(_ context.Context, data zksync.LossData) {
	fmt.Printf("%s %s: lost after %v: %v\n", data.Kind, data.Path, data.Held, data.Err)
}

func ExampleTracer() {
	var tracer zksync.Tracer = slowLocks{threshold: time.Second}
	ctx := tracer.AcquireStart(context.Background(), zksync.AcquireStartData{Path: "/locks/orders", Kind: zksync.KindLock})
	tracer.AcquireEnd(ctx, zksync.AcquireEndData{Path: "/locks/orders", Kind: zksync.KindLock, Waited: 3 * time.Second})
	if optional, ok := tracer.(zksync.LossTracer); ok {
		optional.Lost(ctx, zksync.LossData{
			Path: "/locks/orders", Kind: zksync.KindLock, Held: time.Minute, Err: zksync.ErrLost,
		})
	}
	// Output:
	// lock /locks/orders: waited 3s
	// lock /locks/orders: lost after 1m0s: zksync: lease lost
}
