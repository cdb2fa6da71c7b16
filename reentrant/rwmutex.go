package reentrant

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// RWMutex is a [zkrwmutex.RWMutex] that its owner may lock again, as Java's
// ReentrantReadWriteLock:
//   - a writer may lock for writing and for reading again, at no cost;
//   - a writer who gives the write lock up while it still reads goes on reading: the
//     write lock is downgraded, and no writer gets in between;
//   - a reader who asks for the write lock would wait for himself for ever, and is refused
//     at once with zksync.ErrUpgrade.
//
// It queues like the wrapped lock, on the same paths and with the same others, Curator's
// InterProcessReadWriteLock among them. Share one RWMutex per path in a process. It
// is safe for use by many goroutines. A hold that began with Lock or RLock and was lost keeps those
// goroutines of this process out that it would conflict with, until its last Unlock or its
// owner locks anew.
type RWMutex struct {
	rw *zkrwmutex.RWMutex
	*holds
}

// NewRWMutex makes rw reentrant. Use rw itself no more.
//
// A nil rw is reported by the first call as zksync.ErrMisuse.
func NewRWMutex(rw *zkrwmutex.RWMutex) *RWMutex {
	if rw == nil {
		rw = zkrwmutex.New(nil, "/")
	}
	return &RWMutex{rw, newHolds(share.MonitorOf(rw), rw.Downgrade)}
}

// Lock locks m for writing for the calling goroutine, or counts one level more if that
// holds it for writing. A first level waits for ever and panics like
// [zkrwmutex.RWMutex.Lock]; a further one returns at once. It panics with an error that
// wraps zksync.ErrUpgrade if the goroutine holds m for reading only. If the hold was lost
// meanwhile it queues anew, and what it returns from is the first level of a new hold.
func (m *RWMutex) Lock() {
	if _, err := m.lock(context.Background(), current(), m.dropIn(false, false), mirrorLock); err != nil {
		panic(err)
	}
}

// RLock locks m for reading for the calling goroutine, or counts one level more if that
// holds it for reading or writing. Otherwise it is like Lock.
func (m *RWMutex) RLock() {
	if _, _, err := m.rlock(context.Background(), current(), m.dropIn(true, false), mirrorLock); err != nil {
		panic(err)
	}
}

// LockContext locks m for writing for the owner in ctx ([WithOwner]), or else for the
// calling goroutine, and returns a lease of its own for this level: its Unlock gives back
// this level only. It fails like [zkrwmutex.RWMutex.LockContext], with zksync.ErrUpgrade
// if the owner holds m for reading only.
func (m *RWMutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.lockLease(ctx, m.rw.LockContext, form{leased: true})
}

// TryLockContext is LockContext without waiting for others: a first level fails with
// zksync.ErrNotAcquired if somebody else holds or waits.
func (m *RWMutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.lockLease(ctx, m.rw.TryLockContext, form{leased: true, try: true})
}

// RLockContext locks m for reading for the owner in ctx, or else for the calling
// goroutine, and returns a lease of its own for this level. As long as there is such a
// lease inside a write hold, giving up the write lock does not downgrade it: it stays
// exclusive until the lease is given back. Otherwise it is like LockContext.
func (m *RWMutex) RLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.rlockLease(ctx, m.rw.RLockContext, form{leased: true})
}

// TryRLockContext is RLockContext without waiting for others.
func (m *RWMutex) TryRLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.rlockLease(ctx, m.rw.TryRLockContext, form{leased: true, try: true})
}

// Unlock takes back the calling goroutine's last Lock. With the last level the lock is
// given up, or downgraded if the goroutine still reads. It panics if the goroutine does
// not hold m for writing, naming whoever does. Unlocks of levels of a hold that was lost
// have nothing to give up and return. It blocks like [zksync.Lease.Unlock].
func (m *RWMutex) Unlock() { m.unlockMirror("Unlock", "RWMutex", "an RWMutex") }

// RUnlock takes back the calling goroutine's last RLock. It panics if the goroutine does
// not hold m for reading. Otherwise it is like Unlock.
func (m *RWMutex) RUnlock() {
	o := current()
	m.mu.Lock()
	w, r := m.write, m.reads[o]
	switch {
	case w != nil && w.owner == o && w.reads.mirror > 0:
		m.runlockInside(w, false) // unlocks mu
	case r != nil && r.reads.mirror > 0:
		m.runlock(o, r, false) // unlocks mu
	case m.lost[o].reads > 0:
		m.owe(o, lostLevels{reads: -1})
		m.mu.Unlock()
	default:
		m.mu.Unlock()
		panic(fmt.Sprintf("reentrant: RUnlock by %v of an RWMutex that it does not hold for reading", o))
	}
}

// TryLock is Lock without waiting: a first level is like [zkrwmutex.RWMutex.TryLock], a further
// one succeeds at once. It reports false, too, if the goroutine holds m for reading only.
func (m *RWMutex) TryLock() bool {
	_, err := m.lock(context.Background(), current(), m.dropIn(false, true), mirrorTry)
	return tried(err)
}

// TryRLock is RLock without waiting, otherwise like TryLock.
func (m *RWMutex) TryRLock() bool {
	_, _, err := m.rlock(context.Background(), current(), m.dropIn(true, true), mirrorTry)
	return tried(err)
}

// dropIn gets the lease of a first level of the form without leases. It panics where that does.
func (m *RWMutex) dropIn(read, try bool) getter {
	return func(context.Context) (*zksync.Lease, error) {
		l, ok := m.holds.wrapped.(share.DropInLocker).DropIn(read, try)
		if !ok {
			return nil, zksync.ErrNotAcquired
		}
		return (*zksync.Lease)(l), nil
	}
}

// Do runs f while the owner in ctx, or else the calling goroutine, holds m for writing. The
// context that f gets carries the owner, so that calls inside with that context are nested,
// whichever goroutines make them, and ends with the lease and with ctx. Otherwise it is like
// [zkrwmutex.RWMutex.Do]; it fails with zksync.ErrUpgrade, without having run f, if the
// owner holds m for reading only.
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.LockContext, f)
}

// RDo is Do for reading: it is nested in a hold of either kind.
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	return scope(ctx, m.RLockContext, f)
}

// HoldCount is how many write levels the calling goroutine holds; 0 if the hold was lost.
func (m *RWMutex) HoldCount() int { return m.writes(current()) }

// ReadHoldCount is how many read levels the calling goroutine holds, those inside a write
// hold included; 0 if the hold was lost.
func (m *RWMutex) ReadHoldCount() int {
	_, r := m.held(current())
	return r
}

// HoldCountContext is HoldCount for the owner in ctx.
func (m *RWMutex) HoldCountContext(ctx context.Context) int { return m.writes(ownerOf(ctx)) }

// ReadHoldCountContext is ReadHoldCount for the owner in ctx.
func (m *RWMutex) ReadHoldCountContext(ctx context.Context) int {
	_, r := m.held(ownerOf(ctx))
	return r
}

// HeldByOwner is HeldByCurrent for the owner in ctx.
func (m *RWMutex) HeldByOwner(ctx context.Context) bool { return m.HoldCountContext(ctx) > 0 }

// HeldByCurrent reports whether the calling goroutine can be proved to hold m for
// writing at this instant.
func (m *RWMutex) HeldByCurrent() bool { return m.HoldCount() > 0 }

// Lease is the lease of the calling goroutine's hold, or else of whoever writes; nil without
// either. Do not unlock it: that would end all levels.
func (m *RWMutex) Lease() *zksync.Lease { return m.anyLease() }

// Contenders lists who holds and who waits, like [zkrwmutex.RWMutex.Contenders].
func (m *RWMutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return m.rw.Contenders(ctx)
}

// RLocker returns a sync.Locker whose Lock and Unlock are RLock and RUnlock of m.
func (m *RWMutex) RLocker() sync.Locker { return (*rlocker)(m) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
