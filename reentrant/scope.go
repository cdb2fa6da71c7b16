package reentrant

import (
	"context"
	"fmt"
	"path"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/zksync"
)

// scope runs f while the owner in ctx, or else the goroutine, has what lock locks. The context
// of f says whose it is, so that goroutines that f starts can act for the same owner.
func scope(ctx context.Context, lock getter, f func(ctx context.Context, l *zksync.Lease) error) error {
	ctx = context.WithValue(ctx, ownerKey{}, ownerOf(ctx))
	l, err := lock(ctx)
	if err != nil {
		return err
	}
	return door.Scope(ctx, l, f)
}

// refused is the error of asking for the write lock while o reads under l.
func refused(o owner, l *zksync.Lease, f form) error {
	op := "lock"
	if f.try {
		op = "try-lock"
	}
	return &zksync.Error{Op: op, Path: path.Dir(l.Path()), Err: fmt.Errorf("%w: %v holds it for reading", zksync.ErrUpgrade, o)}
}

// Do runs f while the owner in ctx, or else the calling goroutine, holds m for writing. The
// context that f gets carries the owner, so that calls inside with that context are nested,
// whichever goroutines make them, and ends with the lease and with ctx. Otherwise it is like
// [zkrwmutex.RWMutex.Do]; it fails with zksync.ErrUpgrade, without having run f, if the
// owner holds m for reading only.
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.LockContext, f)
}

// RDo is Do for reading: it is nested in a hold of either kind.
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.RLockContext, f)
}
