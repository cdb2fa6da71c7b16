package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// Mutex is a [zksync.Mutex] that its owner may lock again.
type Mutex struct {
	m      *zksync.Mutex
	*holds // nobody reads
}

// NewMutex makes m reentrant. Do not use m itself any more.
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

// Lock locks m for the calling goroutine, or counts one level more, at once. After a loss it begins a new
// hold.
func (m *Mutex) Lock() {
	if err := m.made().dropIn(m.first(false, false), form{}); err != nil {
		panic(err)
	}
}

// TryLock is Lock without waiting for other owners, and reports whether it did.
func (m *Mutex) TryLock() bool {
	return tried(m.made().dropIn(m.first(false, true), form{try: true}))
}

// Unlock takes back the calling goroutine's last Lock. The last level waits like [zksync.Lease.Unlock]. It
// panics if the mutex is not locked, or another owner holds it.
func (m *Mutex) Unlock() { m.made().unlockDropIn("unlock", "mutex", "a mutex") }

// LockContext locks m for the owner in ctx, and returns a lease for this level, whose Unlock gives back only
// this level. All leases of a hold have one token, and end together if the hold is lost.
func (m *Mutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.m.LockContext, form{})
}

// TryLockContext is LockContext without waiting for other owners: else zksync.ErrNotAcquired.
func (m *Mutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.m.TryLockContext, form{try: true})
}

// Do is [zksync.Mutex.Do] for the owner in ctx. Calls with the context of f are nested, whichever goroutines
// make them.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.made().LockContext, f)
}

// Contenders is [zksync.Mutex.Contenders].
func (m *Mutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return m.made().m.Contenders(ctx)
}
