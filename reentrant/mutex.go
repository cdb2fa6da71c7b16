package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// Mutex is a [zksync.Mutex] that its owner may lock again. It queues on the same paths, with the same other
// libraries. Share one Mutex per path in a process: two do not know each other's owners. A lost hold that began
// with Lock keeps the goroutines of this process out until its last Unlock, or until its owner locks again.
type Mutex struct {
	m      *zksync.Mutex
	*holds // nobody reads
}

// NewMutex makes m reentrant. Do not use m itself any more. The first call reports a nil m as zksync.ErrMisuse.
func NewMutex(m *zksync.Mutex) *Mutex {
	if m == nil {
		m = zksync.NewMutex(nil, "/")
	}
	return &Mutex{m, newHolds(share.MonitorOf(m), nil)}
}

// made is m, which NewMutex has made. Of a zero or nil value it panics.
func (m *Mutex) made() *Mutex {
	if m == nil || m.holds == nil {
		panic(errs.Unmade("reentrant", "a Mutex", "NewMutex"))
	}
	return m
}

// Lock locks m for the calling goroutine, or counts one level more if that goroutine holds it, at once. After a
// loss it queues again, and begins a new hold.
func (m *Mutex) Lock() {
	if err := m.made().dropIn(m.first(false, false), form{}); err != nil {
		panic(err)
	}
}

// TryLock is Lock without waiting for other owners, and reports whether the calling goroutine holds one level
// more.
func (m *Mutex) TryLock() bool {
	return tried(m.made().dropIn(m.first(false, true), form{try: true}))
}

// Unlock takes back the calling goroutine's last Lock. The last level releases the lock and waits like
// [zksync.Lease.Unlock]. Unlock panics if the mutex is not locked; if another owner holds it, the panic names
// both.
func (m *Mutex) Unlock() { m.made().unlockDropIn("unlock", "mutex", "a mutex") }

// LockContext locks m for the owner in ctx ([WithOwner]), or else for the calling goroutine, and returns a lease
// for this level, whose Unlock gives back only this level. All leases of a hold have one token, and end together
// if the hold is lost. After a loss it queues again, and the lease belongs to a new hold, with a greater token.
func (m *Mutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.m.LockContext, form{})
}

// TryLockContext is LockContext without waiting for other owners: it fails with zksync.ErrNotAcquired if another
// one holds or waits.
func (m *Mutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.m.TryLockContext, form{try: true})
}

// Do runs f while the owner in ctx, or else the calling goroutine, holds m. The context of f has the owner, so
// calls with it are nested, whichever goroutines make them. Otherwise Do is like [zksync.Mutex.Do].
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.made().LockContext, f)
}

// Contenders lists the holder and the waiters, like [zksync.Mutex.Contenders].
func (m *Mutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return m.made().m.Contenders(ctx)
}
