// Package fencing has stores that refuse the writes of a process which held a lock once, was paused, and was overtaken.
// docs/fencing.md explains them.
//
// In each store the value is a number of pieces. A holder of the lock claims the store first, which returns the number, and
// then writes another one.
package fencing

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
)

// Store is what a lock protects.
type Store interface {
	// Claim records that l was granted, and returns the pieces. From then on no earlier holder can write.
	Claim(ctx context.Context, l *zksync.Lease) (pieces int, err error)
	// Write replaces the pieces. It is zksync.ErrStale if a later holder has claimed the store.
	Write(ctx context.Context, l *zksync.Lease, pieces int) error
}

// refused is the error of a write that came too late.
func refused(l *zksync.Lease) error {
	return fmt.Errorf("token %s: a later holder has claimed it: %w", l.Token(), zksync.ErrStale)
}
