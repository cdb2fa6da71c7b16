package reentrant

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/petermattis/goid"
)

// owner is the owner of a hold: a goroutine, or an owner that WithOwner made.
type owner struct {
	goroutine int64
	number    int64 // of a WithOwner; 0 for a goroutine
}

func (o owner) String() string {
	if o.number != 0 {
		return fmt.Sprintf("owner %d of a context", o.number)
	}
	return fmt.Sprintf("goroutine %d", o.goroutine)
}

type ownerKey struct{}

var owners atomic.Int64

// WithOwner returns a context with a new owner. Calls with it, or one derived from it, are nested, whichever
// goroutines make them.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner{number: owners.Add(1)})
}

// ownerOf is the owner in ctx, or else the goroutine.
func ownerOf(ctx context.Context) owner {
	if o, ok := ctx.Value(ownerKey{}).(owner); ok {
		return o
	}
	return current()
}

func current() owner { return owner{goroutine: goid.Get()} }

// scope runs f while the owner in ctx, or else the goroutine, holds what lock locks. The context
// of f has the owner, so goroutines that f starts can act for it.
func scope(ctx context.Context, lock getter, f func(ctx context.Context, l *zksync.Lease) error) error {
	ctx = context.WithValue(ctx, ownerKey{}, ownerOf(ctx))
	l, err := lock(ctx)
	if err != nil {
		return err
	}
	return (*lease.Lease)(l).Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// refused is the error of a Lock while o reads.
func (m *holds) refused(o owner, f form) error {
	op := "lock"
	if f.try {
		op = "try-lock"
	}
	return m.wrapped.At().Named(op, fmt.Errorf("%w: %v holds it for reading", zksync.ErrUpgrade, o))
}

// busy is the error of a Try while another goroutine of o begins a hold.
func (m *holds) busy(o owner) error {
	return m.wrapped.At().Named("try-lock", fmt.Errorf("another goroutine of %v is about to lock: %w", o, zksync.ErrNotAcquired))
}
