package reentrant

import (
	"context"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// holds are what the goroutines of this process hold of one lock, with all levels. A Mutex is
// a lock of which nobody reads.
type holds struct {
	wrapped share.Monitor // of a *zksync.Mutex or a *zkrwmutex.RWMutex
	// turn downgrades a lease of the wrapped lock.
	turn func(context.Context, *zksync.Lease) (*zksync.Lease, error)

	mu    sync.Mutex
	write *writeHold // nil while nobody of this process writes
	reads map[owner]*readHold
	// lost counts, per owner, the Unlocks and RUnlocks still to come for holds that were
	// lost and have been replaced. They must not touch the hold that replaced them.
	lost map[owner]lostLevels
	// discarded is closed when the lost hold that was replaced last has been given up; nil if there was none.
	discarded chan struct{}

	claims claims
}

func newHolds(wrapped share.Monitor, turn func(context.Context, *zksync.Lease) (*zksync.Lease, error)) *holds {
	return &holds{wrapped: wrapped, turn: turn, reads: make(map[owner]*readHold), lost: make(map[owner]lostLevels)}
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

type getter func(context.Context) (*zksync.Lease, error)

// form is which method asks for a level.
type form struct{ leased, try bool }

var mirrorLock, mirrorTry = form{}, form{try: true}

func (m *holds) lockLease(ctx context.Context, first getter, f form) (*zksync.Lease, error) {
	h, err := m.lock(ctx, ownerOf(ctx), first, f)
	if err != nil {
		return nil, err
	}
	return sub(ctx, m.outer(h), func() {
		m.mu.Lock()
		m.unlock(h, true)
	}), nil
}

func (m *holds) rlockLease(ctx context.Context, first getter, f form) (*zksync.Lease, error) {
	o := ownerOf(ctx)
	w, r, err := m.rlock(ctx, o, first, f)
	switch {
	case err != nil:
		return nil, err
	case w != nil:
		return sub(ctx, m.outer(w), func() {
			m.mu.Lock()
			m.runlockInside(w, true)
		}), nil
	}
	return sub(ctx, r.lease, func() {
		m.mu.Lock()
		m.runlock(o, r, true)
	}), nil
}

// lock adds a level to the write hold of o, or begins one.
func (m *holds) lock(ctx context.Context, o owner, first getter, f form) (w *writeHold, err error) {
	again := func() (bool, error) {
		w, err = m.lockAgain(o, f)
		return w != nil, err
	}
	err = m.acquire(ctx, o, first, f, again, func(l *zksync.Lease) {
		m.replaceLost()
		w = &writeHold{owner: o, lease: l}
		w.writes.add(f.leased, 1)
		m.write = w
	})
	return w, err
}

// rlock adds a read level to whichever hold o has, or begins one.
func (m *holds) rlock(ctx context.Context, o owner, first getter, f form) (w *writeHold, r *readHold, err error) {
	again := func() (bool, error) {
		w, r = m.rlockAgain(o, f)
		return w != nil || r != nil, nil
	}
	err = m.acquire(ctx, o, first, f, again, func(l *zksync.Lease) {
		r = &readHold{lease: l}
		r.reads.add(f.leased, 1)
		m.reads[o] = r
	})
	return w, r, err
}

// acquire has again add a level to a hold of o. If there is none, it gets a first lease, and
// begins a hold with mu held. No two goroutines of o do that at a time.
func (m *holds) acquire(ctx context.Context, o owner, first getter, f form, again func() (bool, error), begin func(*zksync.Lease)) error {
	if ctx.Err() != nil {
		_, err := first(ctx) // for its error
		return err
	}
	if added, err := again(); added || err != nil {
		return err
	}
	end := m.claims.claim(ctx, o, f.try)
	switch {
	case end == nil && ctx.Err() != nil:
		_, err := first(ctx)
		return err
	case end == nil:
		return busy(o)
	}
	defer end()
	// The one who had the claim may have begun a hold.
	if added, err := again(); added || err != nil {
		return err
	}
	m.clear(ctx)
	l, err := first(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	begin(l)
	return nil
}

// lockAgain adds a write level if o writes. It returns nil if o has to queue.
func (m *holds) lockAgain(o owner, f form) (*writeHold, error) {
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

// rlockAgain adds a read level to the hold of o, if there is one.
func (m *holds) rlockAgain(o owner, f form) (*writeHold, *readHold) {
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
func (m *holds) bury(o owner) {
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
func (m *holds) replaceLost() {
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
func (m *holds) discard(l *zksync.Lease) {
	done := make(chan struct{})
	m.discarded = done
	f := func() {
		defer close(done)
		_ = l.Unlock()
	}
	if !m.wrapped.Session().Spawn(f) {
		go f() // it ends with the session, which is being closed
	}
}

// clear waits until the lost hold that was found last has been given up.
func (m *holds) clear(ctx context.Context) {
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
func (m *holds) owe(o owner, by lostLevels) {
	l := m.lost[o]
	l.writes += by.writes
	l.reads += by.reads
	if m.lost[o] = l; l == (lostLevels{}) {
		delete(m.lost, o)
	}
}

// held is how many levels o holds; none if its hold was lost.
func (m *holds) held(o owner) (writes, reads int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.write; w != nil && w.owner == o && w.valid() {
		return w.writes.all(), w.reads.all()
	}
	if r := m.reads[o]; r != nil && r.lease.Valid() {
		return 0, r.reads.all()
	}
	return 0, 0
}

func (m *holds) writes(o owner) int {
	w, _ := m.held(o)
	return w
}

// anyLease is the lease of the calling goroutine's hold, or else of whoever writes; nil without either.
func (m *holds) anyLease() *zksync.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := current()
	if r := m.reads[o]; r != nil && (m.write == nil || m.write.owner != o) {
		return r.lease
	}
	if m.write != nil {
		return m.write.lease
	}
	return nil
}

// tried reports whether a Try form succeeded. It panics on errors that trying again would
// not mend.
func tried(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, zksync.ErrNotAcquired), errors.Is(err, zksync.ErrUpgrade):
		return false
	}
	panic(err)
}
