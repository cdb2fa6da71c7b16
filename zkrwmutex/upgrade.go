package zkrwmutex

import (
	"context"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/zksync"
)

// readHold is a read lease in the contexts that come from it. With it LockContext finds out that its
// caller holds the read lock. The RWMutex itself is the key: a context
// may come from leases of several RWMutexes.
type readHold struct {
	context.Context
	rw    *RWMutex
	lease atomic.Pointer[zksync.Lease] // nil until it is granted
}

// Value implements context.Context.
func (h *readHold) Value(key any) any {
	if key == any(h.rw) {
		return h
	}
	return h.Context.Value(key)
}

// readHeld reports whether ctx comes from a read lease of rw that is still held.
func (rw *RWMutex) readHeld(ctx context.Context) bool {
	h, _ := ctx.Value(rw).(*readHold)
	if h == nil {
		return false
	}
	l := h.lease.Load()
	return l != nil && l.Err() == nil
}
