// Package nest is the door through which this module's other packages make nested
// leases, which only zksync can: its Lease has no exported fields, and users of the
// module have no use for the constructor.
package nest

import "context"

// Maker makes a lease of its own on the hold of another one; see zksync.
type Maker[Lease any] func(ctx context.Context, outer Lease, unlock func()) Lease

// maker is set before main and only read after.
var maker any

// Provide is called by zksync when it is initialised.
func Provide[Lease any](m Maker[Lease]) { maker = m }

// Lease returns a lease on the hold of outer, with outer's token and the values of
// ctx. It ends with outer, or by its own Unlock, which calls unlock exactly once,
// also if the hold was lost before, and leaves it to unlock what becomes of outer.
func Lease[L any](ctx context.Context, outer L, unlock func()) L {
	return maker.(Maker[L])(ctx, outer, unlock)
}
