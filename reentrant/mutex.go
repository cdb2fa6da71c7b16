package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// Mutex is a [zksync.Mutex] that its owner may lock again. It queues like that one,
// on the same paths and with the same other libraries, for example Curator's InterProcessMutex.
// Share one Mutex per path in a process: two Mutexes on one path do not know
// each other's owners and exclude them. It is safe for use by many goroutines.
//
// If a hold that began with Lock is lost, it keeps the goroutines of this process out until its
// last Unlock, or until its owner locks anew.
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
		panic(errs.Unmade("a Mutex", "NewMutex"))
	}
	return m
}

// Lock locks m for the calling goroutine, or counts one level more if that goroutine
// holds it. A first level blocks and panics like [zksync.Mutex.Lock], and costs its requests. A
// further level returns at once and costs none. If the hold was lost meanwhile, Lock queues anew, and
// begins a new hold with a first level.
func (m *Mutex) Lock() {
	if err := m.made().dropIn(m.first(false, false), form{}); err != nil {
		panic(err)
	}
}

// TryLock is Lock without waiting for other owners, and reports whether the calling goroutine holds one level more. A
// first level is like [zksync.Mutex.TryLock]; a further level succeeds at once.
func (m *Mutex) TryLock() bool {
	return tried(m.made().dropIn(m.first(false, true), form{try: true}))
}

// Unlock takes back the calling goroutine's last Lock. The last level releases the lock, and blocks
// like [zksync.Lease.Unlock]; any other returns at once. An Unlock of a level of a hold that was lost
// returns at once. Unlock panics if the mutex is not locked; if another owner holds it, the panic names both.
func (m *Mutex) Unlock() { m.made().unlockDropIn("unlock", "mutex", "a mutex") }

// LockContext locks m for the owner in ctx ([WithOwner]), or else for the calling
// goroutine, and returns a lease for this level. The lease's Unlock gives back
// only this level. All leases of a hold have one token, and end together if the
// hold is lost. A first level blocks and fails like [zksync.Mutex.LockContext], and costs its requests. A
// further level returns at once and costs none. After a loss LockContext queues anew, and the lease is one of a
// new hold, with a greater token.
func (m *Mutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.m.LockContext, form{})
}

// TryLockContext is LockContext without waiting for other owners. A first level is like
// [zksync.Mutex.TryLockContext]: it fails with zksync.ErrNotAcquired if another owner holds or waits.
func (m *Mutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.m.TryLockContext, form{try: true})
}

// Do runs f while the owner in ctx, or else the calling goroutine, holds m. The context of f
// has the owner, so calls with that context are nested, whichever goroutines make them. It ends
// with the lease and with ctx. Otherwise Do is like [zksync.Mutex.Do].
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.made().LockContext, f)
}

// Contenders lists the holder and the waiters, like [zksync.Mutex.Contenders].
func (m *Mutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return m.made().m.Contenders(ctx)
}
