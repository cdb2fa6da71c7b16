package reentrant

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/nest"
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
// is safe for use by many goroutines. Unlike [Mutex], a lost hold does not keep other
// goroutines of this process out until it is unlocked.
type RWMutex struct {
	rw *zkrwmutex.RWMutex

	mu    sync.Mutex
	write *writeHold // nil while nobody of this process writes
	reads map[owner]*readHold
	// lost counts, per owner, the Unlocks and RUnlocks still to come for holds that were
	// lost and have been replaced.
	lost map[owner]lostLevels
}

// writeHold is one hold of the write lock, with all its levels.
type writeHold struct {
	owner  owner
	lease  *zksync.Lease
	writes int // levels of Lock, not yet unlocked
	reads  int // levels of RLock inside them
	leases int // of those, the ones with a lease of their own
}

// readHold is one hold of the read lock, with all its levels.
type readHold struct {
	lease *zksync.Lease
	reads int
}

type lostLevels struct{ writes, reads int }

// NewRWMutex makes rw reentrant. Use rw itself no more.
func NewRWMutex(rw *zkrwmutex.RWMutex) *RWMutex {
	return &RWMutex{rw: rw, reads: make(map[owner]*readHold), lost: make(map[owner]lostLevels)}
}

// Lock locks m for writing for the calling goroutine, or counts one level more if that
// holds it for writing. A first level waits for ever and panics like
// [zkrwmutex.RWMutex.Lock]; a further one returns at once. It panics with an error that
// wraps zksync.ErrUpgrade if the goroutine holds m for reading only. If the hold was lost
// meanwhile it queues anew, and what it returns from is the first level of a new hold.
func (m *RWMutex) Lock() {
	if _, err := m.lock(context.Background(), current(), m.rw.LockContext); err != nil {
		panic(err)
	}
}

// RLock locks m for reading for the calling goroutine, or counts one level more if that
// holds it for reading or writing. Otherwise it is like Lock.
func (m *RWMutex) RLock() {
	if _, _, err := m.rlock(context.Background(), current(), m.rw.RLockContext, false); err != nil {
		panic(err)
	}
}

// LockContext locks m for writing for the owner in ctx ([WithOwner]), or else for the
// calling goroutine, and returns a lease of its own for this level: its Unlock gives back
// this level only. It fails like [zkrwmutex.RWMutex.LockContext], with zksync.ErrUpgrade
// if the owner holds m for reading only.
func (m *RWMutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.lockLease(ctx, m.rw.LockContext)
}

// TryLockContext is LockContext without waiting for others: a first level fails with
// zksync.ErrNotAcquired if somebody else holds or waits.
func (m *RWMutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.lockLease(ctx, m.rw.TryLockContext)
}

// RLockContext locks m for reading for the owner in ctx, or else for the calling
// goroutine, and returns a lease of its own for this level. As long as there is such a
// lease inside a write hold, giving up the write lock does not downgrade it: it stays
// exclusive until the lease is given back. Otherwise it is like LockContext.
func (m *RWMutex) RLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.rlockLease(ctx, m.rw.RLockContext)
}

// TryRLockContext is RLockContext without waiting for others.
func (m *RWMutex) TryRLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.rlockLease(ctx, m.rw.TryRLockContext)
}

type getter func(context.Context) (*zksync.Lease, error)

func (m *RWMutex) lockLease(ctx context.Context, first getter) (*zksync.Lease, error) {
	o := ownerOf(ctx)
	h, err := m.lock(ctx, o, first)
	if err != nil {
		return nil, err
	}
	return nest.Lease(ctx, h.lease, func() { m.unlock(h) }), nil
}

func (m *RWMutex) rlockLease(ctx context.Context, first getter) (*zksync.Lease, error) {
	o := ownerOf(ctx)
	w, r, err := m.rlock(ctx, o, first, true)
	switch {
	case err != nil:
		return nil, err
	case w != nil:
		return nest.Lease(ctx, w.lease, func() { m.runlockInside(w, true) }), nil
	}
	return nest.Lease(ctx, r.lease, func() { m.runlock(o, r) }), nil
}

// lock adds a level to the write hold of o, or begins one.
func (m *RWMutex) lock(ctx context.Context, o owner, first getter) (*writeHold, error) {
	if err := ctx.Err(); err != nil {
		_, err := first(ctx)
		return nil, err
	}
	m.mu.Lock()
	m.bury(o)
	switch {
	case m.write != nil && m.write.owner == o && m.write.writes > 0:
		defer m.mu.Unlock()
		m.write.writes++
		return m.write, nil
	case m.write != nil && m.write.owner == o, m.reads[o] != nil:
		defer m.mu.Unlock()
		return nil, fmt.Errorf("reentrant: %v holds the lock for reading: %w", o, zksync.ErrUpgrade)
	}
	m.mu.Unlock()
	l, err := first(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replaceLost()
	m.write = &writeHold{owner: o, lease: l, writes: 1}
	return m.write, nil
}

// rlock adds a read level to whichever hold o has, or begins one.
func (m *RWMutex) rlock(ctx context.Context, o owner, first getter, leased bool) (*writeHold, *readHold, error) {
	if err := ctx.Err(); err != nil {
		_, err := first(ctx)
		return nil, nil, err
	}
	m.mu.Lock()
	m.bury(o)
	if w := m.write; w != nil && w.owner == o {
		defer m.mu.Unlock()
		w.reads++
		if leased {
			w.leases++
		}
		return w, nil, nil
	}
	if r := m.reads[o]; r != nil {
		defer m.mu.Unlock()
		r.reads++
		return nil, r, nil
	}
	m.mu.Unlock()
	l, err := first(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.reads[o]
	if r != nil { // another goroutine of the same owner was quicker
		r.reads++
		go func() { _ = l.Unlock() }()
		return nil, r, nil
	}
	r = &readHold{lease: l, reads: 1}
	m.reads[o] = r
	return nil, r, nil
}

// bury takes holds of o that were lost out of the way. mu is held.
func (m *RWMutex) bury(o owner) {
	if m.write != nil && m.write.owner == o {
		m.replaceLost()
	}
	if r := m.reads[o]; r != nil && !r.lease.Valid() {
		l := m.lost[o]
		l.reads += r.reads
		m.lost[o] = l
		delete(m.reads, o)
	}
}

// replaceLost takes a write hold that was lost out of the way. mu is held.
func (m *RWMutex) replaceLost() {
	w := m.write
	if w == nil || w.lease.Valid() {
		return
	}
	l := m.lost[w.owner]
	l.writes += w.writes
	l.reads += w.reads
	m.lost[w.owner] = l
	m.write = nil
}
