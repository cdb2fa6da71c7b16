// Package nest is the door through which this module's other packages make nested
// leases, which only zksync can: its Lease has no exported fields, and users of the
// module have no use for the constructor.
package nest

import "context"

// Maker makes a lease of its own on the hold of another one; see zksync.
type Maker[Lease any] func(ctx context.Context, outer Lease, unlock func()) Lease

// Inspector implements [Outer] and [Move]; see zksync.
type Inspector[Lease any] interface {
	Outer(inner Lease) (outer Lease, nested bool)
	Move(ctx context.Context, inner, outer Lease) Lease
}

// Set before main and only read after.
var maker, inspector any

// Provide is called by zksync when it is initialised.
func Provide[Lease any](m Maker[Lease], i Inspector[Lease]) { maker, inspector = m, i }

// Outer is the lease in which inner is nested, if it is.
func Outer[L any](inner L) (outer L, nested bool) { return inspector.(Inspector[L]).Outer(inner) }

// Move returns a lease on the hold of outer in the place of inner, whose own Unlock does
// nothing to the hold any more.
func Move[L any](ctx context.Context, inner, outer L) L {
	return inspector.(Inspector[L]).Move(ctx, inner, outer)
}

// Lease returns a lease on the hold of outer, with outer's token and the values of
// ctx. It ends with outer, or by its own Unlock, which calls unlock exactly once,
// also if the hold was lost before, and leaves it to unlock what becomes of outer.
func Lease[L any](ctx context.Context, outer L, unlock func()) L {
	return maker.(Maker[L])(ctx, outer, unlock)
}
