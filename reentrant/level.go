package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/zksync"
)

// sub is the lease of one level of the hold of outer: see lease.Sub.
func sub(ctx context.Context, outer *zksync.Lease, unlock func()) *zksync.Lease {
	return (*zksync.Lease)(lease.Sub(ctx, (*lease.Lease)(outer), unlock))
}

// outerOf is the lease in which l is a level, if it is.
func outerOf(l *zksync.Lease) (outer *zksync.Lease, nested bool) {
	o, nested := (*lease.Lease)(l).Outer()
	return (*zksync.Lease)(o), nested
}

// release unlocks l, within the time that a caller with ctx has.
func release(ctx context.Context, l *zksync.Lease) { _ = (*lease.Lease)(l).UnlockWithin(ctx) }
