package reentrant

import (
	"context"
	"sync"

	"github.com/go-menagerie/menagerie/internal/door"
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
// is safe for use by many goroutines. A hold that began with Lock or RLock and was lost keeps those
// goroutines of this process out that it would conflict with, until its last Unlock or its
// owner locks anew.
type RWMutex struct {
	rw *zkrwmutex.RWMutex

	mu    sync.Mutex
	write *writeHold // nil while nobody of this process writes
	reads map[owner]*readHold
	// lost counts, per owner, the Unlocks and RUnlocks still to come for holds that were
	// lost and have been replaced.
	lost map[owner]lostLevels
	// discarded is closed when the lost hold that was replaced last has been given up; nil if there was none.
	discarded chan struct{}

	claims claims
}

// writeHold is one hold of the write lock, with all its levels.
type writeHold struct {
	owner  owner
	lease  *zksync.Lease
	writes levels    // of Lock, not yet unlocked
	reads  levels    // of RLock inside them
	became *readHold // what it was downgraded to

	turning bool // a downgrade is under way
}

// readHold is one hold of the read lock, with all its levels.
type readHold struct {
	lease *zksync.Lease
	reads levels
}

// levels counts those of the form with leases, each of which ends with its own lease, apart
// from those of the mirror form.
type levels struct{ mirror, leased int }

func (l *levels) add(leased bool, n int) {
	if leased {
		l.leased += n
	} else {
		l.mirror += n
	}
}

func (l levels) all() int { return l.mirror + l.leased }

// valid reports whether w can be proved to be held. While it turns into a read hold, its lease
// is none that proves anything; what comes of it is known when that has ended.
func (w *writeHold) valid() bool { return w.turning || w.lease.Valid() }

type lostLevels struct{ writes, reads int }

// NewRWMutex makes rw reentrant. Use rw itself no more.
//
// A nil rw is reported by the first call as zksync.ErrMisuse.
func NewRWMutex(rw *zkrwmutex.RWMutex) *RWMutex {
	if rw == nil {
		rw = zkrwmutex.New(nil, "/")
	}
	return &RWMutex{rw: rw, reads: make(map[owner]*readHold), lost: make(map[owner]lostLevels)}
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

type getter func(context.Context) (*zksync.Lease, error)

// form is which method asks for a level.
type form struct{ leased, try bool }

var mirrorLock, mirrorTry = form{}, form{try: true}

func (m *RWMutex) lockLease(ctx context.Context, first getter, f form) (*zksync.Lease, error) {
	h, err := m.lock(ctx, ownerOf(ctx), first, f)
	if err != nil {
		return nil, err
	}
	return nest.Lease(ctx, rwHold{m, h}.outer(), func() {
		m.mu.Lock()
		m.unlock(h, true)
	}), nil
}

func (m *RWMutex) rlockLease(ctx context.Context, first getter, f form) (*zksync.Lease, error) {
	o := ownerOf(ctx)
	w, r, err := m.rlock(ctx, o, first, f)
	switch {
	case err != nil:
		return nil, err
	case w != nil:
		return nest.Lease(ctx, rwHold{m, w}.outer(), func() {
			m.mu.Lock()
			m.runlockInside(w, true)
		}), nil
	}
	return nest.Lease(ctx, r.lease, func() {
		m.mu.Lock()
		m.runlock(o, r, true)
	}), nil
}

// lock adds a level to the write hold of o, or begins one.
func (m *RWMutex) lock(ctx context.Context, o owner, first getter, f form) (*writeHold, error) {
	if ctx.Err() != nil {
		_, err := first(ctx)
		return nil, err
	}
	if w, err := m.lockAgain(o, f); w != nil || err != nil {
		return w, err
	}
	end, err := m.claim(ctx, o, first, f)
	if err != nil {
		return nil, err
	}
	defer end()
	// The one who had the claim may have begun a hold.
	if w, err := m.lockAgain(o, f); w != nil || err != nil {
		return w, err
	}
	m.clear(ctx)
	l, err := first(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replaceLost()
	m.write = &writeHold{owner: o, lease: l}
	m.write.writes.add(f.leased, 1)
	return m.write, nil
}

// claim keeps other goroutines of o from beginning a hold as well.
func (m *RWMutex) claim(ctx context.Context, o owner, first getter, f form) (end func(), err error) {
	if end = m.claims.claim(ctx, o, f.try); end != nil {
		return end, nil
	}
	if ctx.Err() != nil {
		_, err = first(ctx) // for its error
		return nil, err
	}
	return nil, busy(o)
}

// lockAgain adds a write level if o writes. It returns nil if o has to queue.
func (m *RWMutex) lockAgain(o owner, f form) (*writeHold, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bury(o)
	switch {
	case m.write != nil && m.write.owner == o && m.write.writes.all() > 0:
		m.write.writes.add(f.leased, 1)
		return m.write, nil
	case m.write != nil && m.write.owner == o && m.write.reads.all() > 0:
		return nil, refused(o, m.write.lease, f)
	case m.reads[o] != nil:
		return nil, refused(o, m.reads[o].lease, f)
	}
	return nil, nil
}

// rlock adds a read level to whichever hold o has, or begins one.
func (m *RWMutex) rlock(ctx context.Context, o owner, first getter, f form) (*writeHold, *readHold, error) {
	if ctx.Err() != nil {
		_, err := first(ctx)
		return nil, nil, err
	}
	if w, r := m.rlockAgain(o, f); w != nil || r != nil {
		return w, r, nil
	}
	end, err := m.claim(ctx, o, first, f)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	if w, r := m.rlockAgain(o, f); w != nil || r != nil {
		return w, r, nil
	}
	m.clear(ctx)
	l, err := first(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &readHold{lease: l}
	r.reads.add(f.leased, 1)
	m.reads[o] = r
	return nil, r, nil
}

// rlockAgain adds a read level to the hold of o, if there is one.
func (m *RWMutex) rlockAgain(o owner, f form) (*writeHold, *readHold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bury(o)
	if w := m.write; w != nil && w.owner == o {
		w.reads.add(f.leased, 1)
		return w, nil
	}
	if r := m.reads[o]; r != nil {
		r.reads.add(f.leased, 1)
		return nil, r
	}
	return nil, nil
}

// bury takes holds of o that were lost out of the way. mu is held.
func (m *RWMutex) bury(o owner) {
	if m.write != nil && m.write.owner == o {
		m.replaceLost()
	}
	if r := m.reads[o]; r != nil && !r.lease.Valid() {
		m.owe(o, lostLevels{reads: r.reads.mirror})
		delete(m.reads, o)
		m.discard(r.lease)
	}
}

// replaceLost takes a write hold that was lost out of the way. mu is held.
func (m *RWMutex) replaceLost() {
	w := m.write
	if w == nil || w.valid() {
		return
	}
	m.owe(w.owner, lostLevels{w.writes.mirror, w.reads.mirror})
	m.write = nil
	// A lost hold of the mirror form keeps the goroutines of this process out until it is
	// unlocked. Its owner is here and about to queue, so it keeps nobody out.
	m.discard(w.lease)
}

// discard gives a lost hold up in the background: without a connection that may take a second, and mu is held.
func (m *RWMutex) discard(l *zksync.Lease) {
	done := make(chan struct{})
	m.discarded = done
	f := func() {
		defer close(done)
		_ = l.Unlock()
	}
	if !door.Open(door.MonitorOf[*zksync.Lease](m.rw).Session(), "/").Spawn(f) {
		go f() // it ends with the session, which is being closed
	}
}

// clear waits until the lost hold that was found last has been given up.
func (m *RWMutex) clear(ctx context.Context) {
	m.mu.Lock()
	done := m.discarded
	m.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// owe notes levels of the mirror form that were lost: their Unlocks are still to come. A
// lease's own Unlock needs no such note. mu is held.
func (m *RWMutex) owe(o owner, by lostLevels) {
	l := m.lost[o]
	l.writes += by.writes
	l.reads += by.reads
	if m.lost[o] = l; l == (lostLevels{}) {
		delete(m.lost, o)
	}
}
