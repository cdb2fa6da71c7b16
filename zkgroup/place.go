package zkgroup

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/zksync"
)

// lease returns the lease of an item, together with one of the places of WithConcurrency. It waits for a place without
// the lease, so that no item that waits is kept from another member, and for the lease without a place, so that an item that its owner
// before does not give up keeps no other from running. If both are not free at one time, it returns neither.
func (a *assignment) lease(ctx context.Context, it *item) (*zksync.Lease, error) {
	if a.places == nil {
		return it.lock.LockContext(ctx)
	}
	select {
	case a.places <- struct{}{}: // in the order in which they began to wait
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l, err := it.lock.TryLockContext(ctx)
	if err == nil {
		return l, nil
	}
	a.leavePlace()
	if !errors.Is(err, errs.ErrNotAcquired) {
		return nil, err
	}
	if l, err = it.lock.LockContext(ctx); err != nil {
		return nil, err
	}
	select {
	case a.places <- struct{}{}:
		return l, nil
	default:
		_ = l.Unlock()
		return nil, nil
	}
}

// leavePlace gives a place to the item that has waited longest.
func (a *assignment) leavePlace() {
	if a.places != nil {
		<-a.places
	}
}
