package zksync_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
)

func ExampleError() {
	// What a LockContext returns whose context ended.
	err := error(&zksync.Error{Op: "lock", Path: "/locks/orders", Err: context.DeadlineExceeded})
	fmt.Println(err)

	var failed *zksync.Error
	if errors.As(err, &failed) {
		fmt.Println("path:", failed.Path)
	}
	fmt.Println("in time:", !errors.Is(err, context.DeadlineExceeded))
	// Output:
	// zksync: lock /locks/orders: context deadline exceeded
	// path: /locks/orders
	// in time: false
}

func ExampleAmbiguous() {
	err := error(&zksync.Error{Op: "lock", Path: "/locks/orders", Err: zksync.ErrNotAcquired})
	if zksync.Ambiguous(err) {
		fmt.Println("the servers may or may not have done it")
	} else {
		fmt.Println(err)
	}
	// Output: zksync: lock /locks/orders: not acquired
}
