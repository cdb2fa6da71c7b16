package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// Mutex is a [zksync.Mutex] that its owner may lock again. It queues like that one,
// on the same paths and with the same others, Curator's InterProcessMutex among
// them. Share one Mutex per path in a process: two on one path do not know of each
// other's owners and exclude them. It is safe for use by many goroutines.
type Mutex struct {
	m      *zksync.Mutex
	*holds // nobody reads
}

// NewMutex makes m reentrant. Use m itself no more.
//
// A nil m is reported by the first call as zksync.ErrMisuse.
func NewMutex(m *zksync.Mutex) *Mutex {
	if m == nil {
		m = zksync.NewMutex(nil, "/")
	}
	return &Mutex{m, newHolds(share.MonitorOf(m), nil)}
}

// Lock locks m for the calling goroutine, or counts one level more if that goroutine
// holds it. A first level waits for ever and panics like [zksync.Mutex.Lock]; a
// further one returns at once. If the hold was lost meanwhile, Lock queues anew, and
// what it returns from is the first level of a new hold.
func (m *Mutex) Lock() {
	first := func(context.Context) (*zksync.Lease, error) {
		m.m.Lock()
		return m.m.Lease(), nil
	}
	if _, err := m.lock(context.Background(), current(), first, mirrorLock); err != nil {
		panic(err)
	}
}

// TryLock is Lock without waiting: like [zksync.Mutex.TryLock] for a first level. It
// reports whether the calling goroutine holds one level more.
func (m *Mutex) TryLock() bool {
	first := func(context.Context) (*zksync.Lease, error) {
		if !m.m.TryLock() {
			return nil, zksync.ErrNotAcquired
		}
		return m.m.Lease(), nil
	}
	_, err := m.lock(context.Background(), current(), first, mirrorTry)
	return tried(err)
}

// Unlock takes back the calling goroutine's last Lock; the last level gives the lock
// up, as [zksync.Lease.Unlock] does. It panics if the mutex is not locked, and if
// somebody else holds it, naming both. Unlocks that belong to levels of a hold that
// was lost have nothing to give up and return.
func (m *Mutex) Unlock() { m.unlockMirror("unlock", "mutex", "a mutex") }

// LockContext locks m for the owner in ctx ([WithOwner]), or else for the calling
// goroutine, and returns a lease of its own for this level: its Unlock gives back
// this level only. All leases of a hold share one token and end together when the
// hold is lost. A first level waits and fails like [zksync.Mutex.LockContext]; a
// further one returns at once. After a loss it queues anew and the lease is one of a
// new hold, with a greater token.
func (m *Mutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.lockLease(ctx, m.m.LockContext, form{leased: true})
}

// TryLockContext is LockContext without waiting for others: a first level fails like
// [zksync.Mutex.TryLockContext], with ErrNotAcquired if somebody else holds or waits.
func (m *Mutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.lockLease(ctx, m.m.TryLockContext, form{leased: true, try: true})
}

// Do runs f while the owner in ctx, or else the calling goroutine, holds m. The context that
// f gets carries the owner, so that calls inside with that context are nested, whichever
// goroutines make them, and ends with the lease and with ctx. Otherwise it is like
// [zksync.Mutex.Do].
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.LockContext, f)
}

// HoldCount is how many levels the calling goroutine holds in the mirror form and,
// without an owner in its context, in the context form; 0 if the hold was lost.
func (m *Mutex) HoldCount() int { return m.writes(current()) }

// HoldCountContext is HoldCount for the owner in ctx.
func (m *Mutex) HoldCountContext(ctx context.Context) int { return m.writes(ownerOf(ctx)) }

// HeldByCurrent reports whether the calling goroutine can be proved to hold m at this
// instant.
func (m *Mutex) HeldByCurrent() bool { return m.writes(current()) > 0 }

// HeldByOwner is HeldByCurrent for the owner in ctx.
func (m *Mutex) HeldByOwner(ctx context.Context) bool { return m.writes(ownerOf(ctx)) > 0 }

// Lease is the lease of the whole hold, whoever in this process has it; nil without
// one. Do not unlock it: that would end all levels.
func (m *Mutex) Lease() *zksync.Lease { return m.anyLease() }

// Contenders lists who holds and who waits, like [zksync.Mutex.Contenders].
func (m *Mutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return m.m.Contenders(ctx)
}
