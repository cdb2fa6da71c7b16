package reentrant

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/petermattis/goid"
)

// owner is who holds: a goroutine, or what WithOwner made.
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

// WithOwner returns a context with a new owner: calls of the context form with it,
// or with a context derived from it, are nested in one another, whichever
// goroutines make them. It replaces an owner that ctx has already.
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
