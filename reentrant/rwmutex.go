package reentrant

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// RWMutex is a [zkrwmutex.RWMutex] that its owner may lock again, like Java's ReentrantReadWriteLock:
//
//   - a writer may lock again for writing and for reading;
//   - a writer that unlocks the write lock while it still reads goes on reading: the lock is downgraded, and
//     no writer gets in between;
//   - a reader that asks for the write lock fails at once with zksync.ErrUpgrade.
type RWMutex struct {
	rw *zkrwmutex.RWMutex
	*holds
}

// NewRWMutex makes rw reentrant. Do not use rw itself any more.
func NewRWMutex(rw *zkrwmutex.RWMutex) *RWMutex {
	if rw == nil {
		rw = zkrwmutex.New(nil, "/")
	}
	return &RWMutex{rw, newHolds(share.MonitorOf(rw), func(ctx context.Context, l *lease.Lease) (*lease.Lease, error) {
		read, err := rw.Downgrade(ctx, (*zksync.Lease)(l))
		return (*lease.Lease)(read), err
	})}
}

// made is m, which NewRWMutex has made. Of a zero or nil value it panics.
func (m *RWMutex) made() *RWMutex {
	if m == nil || m.holds == nil {
		panic(errs.Unmade("reentrant", "an RWMutex", "NewRWMutex"))
	}
	return m
}

// Lock locks m for writing for the calling goroutine, or counts one level more. It panics with
// zksync.ErrUpgrade if the goroutine holds m only for reading.
func (m *RWMutex) Lock() {
	if err := m.made().dropIn(m.first(false, false), form{}); err != nil {
		panic(err)
	}
}

// RLock locks m for reading for the calling goroutine, or counts one level more.
func (m *RWMutex) RLock() {
	if err := m.made().dropIn(m.first(true, false), form{read: true}); err != nil {
		panic(err)
	}
}

// LockContext is [Mutex.LockContext] for writing. It fails with zksync.ErrUpgrade if the owner holds m only
// for reading.
func (m *RWMutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.rw.LockContext, form{})
}

// TryLockContext is LockContext without waiting for other owners: else zksync.ErrNotAcquired.
func (m *RWMutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.rw.TryLockContext, form{try: true})
}

// RLockContext is [Mutex.LockContext] for reading. While there is such a lease inside a write hold, an Unlock
// of the last write level does not downgrade it. During a downgrade it waits, also in the Try form.
func (m *RWMutex) RLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.rw.RLockContext, form{read: true})
}

// TryRLockContext is RLockContext without waiting for other owners.
func (m *RWMutex) TryRLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.made().leased(ctx, m.rw.TryRLockContext, form{read: true, try: true})
}

// Unlock takes back the calling goroutine's last Lock. The last level releases the lock, or downgrades it if
// the goroutine still reads. It panics without one.
func (m *RWMutex) Unlock() { m.made().unlockDropIn("Unlock", "RWMutex", "an RWMutex") }

// RUnlock takes back the calling goroutine's last RLock. It panics if there is none.
func (m *RWMutex) RUnlock() {
	o := current()
	m.made().mu.Lock()
	h := m.of(o)
	switch {
	case h != nil && h.reads.dropIn > 0:
		m.takeBack(h, form{read: true}) // unlocks mu
	case m.lost[o].reads > 0:
		m.owe(o, 0, -1)
		m.mu.Unlock()
	default:
		m.mu.Unlock()
		panic(fmt.Sprintf("reentrant: RUnlock by %v of an RWMutex that it does not hold for reading", o))
	}
}

// TryLock is Lock without waiting for other owners; false also if the goroutine holds m only for reading.
func (m *RWMutex) TryLock() bool {
	return tried(m.made().dropIn(m.first(false, true), form{try: true}))
}

// TryRLock is RLock without waiting for other owners.
func (m *RWMutex) TryRLock() bool {
	return tried(m.made().dropIn(m.first(true, true), form{read: true, try: true}))
}

// Do is [Mutex.Do] for writing. It fails with zksync.ErrUpgrade if the owner holds m only for reading.
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.made().LockContext, f)
}

// RDo is [Mutex.Do] for reading. It may be nested in a hold for reading or writing.
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.made().RLockContext, f)
}

// ReadHoldCount is how many levels of RLock the calling goroutine holds; 0 if the hold was lost.
func (m *RWMutex) ReadHoldCount() int {
	_, r := m.made().held(current())
	return r
}

// ReadHoldCountContext is ReadHoldCount for the owner in ctx.
func (m *RWMutex) ReadHoldCountContext(ctx context.Context) int {
	_, r := m.made().held(ownerOf(ctx))
	return r
}

// Contenders is [zkrwmutex.RWMutex.Contenders].
func (m *RWMutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return m.made().rw.Contenders(ctx)
}

// RLocker returns a sync.Locker of RLock and RUnlock.
func (m *RWMutex) RLocker() sync.Locker { return (*rlocker)(m.made()) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
