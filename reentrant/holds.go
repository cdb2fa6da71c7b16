package reentrant

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/nest"
	"github.com/go-menagerie/menagerie/zksync"
)

// holds are what the goroutines of this process hold of one lock, with all levels. A Mutex is
// a lock of which nobody reads.
type holds struct {
	wrapped any // a *zksync.Mutex or a *zkrwmutex.RWMutex
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

func newHolds(wrapped any, turn func(context.Context, *zksync.Lease) (*zksync.Lease, error)) *holds {
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
	return nest.Lease(ctx, m.outer(h), func() {
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
		return nest.Lease(ctx, m.outer(w), func() {
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
func (m *holds) lock(ctx context.Context, o owner, first getter, f form) (*writeHold, error) {
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
func (m *holds) claim(ctx context.Context, o owner, first getter, f form) (end func(), err error) {
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

// rlock adds a read level to whichever hold o has, or begins one.
func (m *holds) rlock(ctx context.Context, o owner, first getter, f form) (*writeHold, *readHold, error) {
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
	if !door.Open(door.MonitorOf[*zksync.Lease](m.wrapped).Session(), "/").Spawn(f) {
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

// downgrading is how long an Unlock waits for its downgrade.
const downgrading = time.Second

// unlockMirror takes back the calling goroutine's last Lock. It panics in the words of the
// lock if there is none.
func (m *holds) unlockMirror(unlock, lock, aLock string) {
	o := current()
	m.mu.Lock()
	w := m.write
	switch {
	case w != nil && w.owner == o && w.writes.mirror > 0:
		// The levels of the newest hold first: it was taken inside those of a lost one.
		m.unlock(w, false) // unlocks mu
	case m.lost[o].writes > 0:
		m.owe(o, lostLevels{writes: -1})
		m.mu.Unlock()
	default:
		m.mu.Unlock()
		if w == nil {
			panic(fmt.Sprintf("reentrant: %s of unlocked %s", unlock, lock))
		}
		panic(fmt.Sprintf("reentrant: %s by %v of %s that %v holds", unlock, o, aLock, w.owner))
	}
}

// unlock takes one write level off w. mu is held, and is released: whoever found the level has
// to take it before w can be replaced, because w was lost, and what it has left be owed.
func (m *holds) unlock(w *writeHold, leased bool) {
	w.writes.add(leased, -1)
	m.settle(w)
}

// settle gives up of w what its levels do not need any more. mu is held, and is released.
func (m *holds) settle(w *writeHold) {
	switch {
	case w.turning || w.writes.all() > 0 || w.reads.leased > 0:
		m.mu.Unlock() // while it turns into a read hold, what it turns into is settled
	case w.reads.mirror > 0 && m.write == w:
		w.turning = true
		m.downgrade(w)
	default:
		m.end(w)
	}
}

// end gives the write lock up. mu is held, and is released.
func (m *holds) end(w *writeHold) {
	if m.write == w {
		m.write = nil // before the lock is given up, or the next holder's entry could be wiped out
	}
	l := w.lease
	m.mu.Unlock()
	_ = l.Unlock() // a loss has been told through the leases
}

// downgrade turns a write hold whose owner only reads any more into a read hold. Without a
// connection that takes until there is one: the owner goes on reading, and must not be left
// with nothing meanwhile, so it stays exclusive until then. mu is held, and is released.
func (m *holds) downgrade(w *writeHold) {
	l := w.lease
	m.mu.Unlock()
	done := make(chan struct{})
	m.spawn(func() {
		defer close(done)
		m.turned(w, l)
	})
	t := time.NewTimer(downgrading)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// spawn runs f in a goroutine that Close of the session joins; in this one once that has begun, when
// no request takes time.
func (m *holds) spawn(f func()) {
	session := door.MonitorOf[*zksync.Lease](m.wrapped).Session()
	if !door.Open(session, "/").Spawn(f) {
		f()
	}
}

// turned ends when the session does, at the latest.
func (m *holds) turned(w *writeHold, l *zksync.Lease) {
	l, err := m.turn(context.Background(), l)
	m.mu.Lock()
	w.turning = false
	if err != nil {
		// Refused, it stays exclusive, which is more than was asked for. Lost, the levels
		// that are left find that out.
		if w.writes.all()+w.reads.all() == 0 {
			m.end(w)
			return
		}
		m.mu.Unlock()
		return
	}
	if m.write == w {
		m.write = nil
	}
	if w.reads.all() == 0 { // unlocked meanwhile
		m.mu.Unlock()
		_ = l.Unlock()
		return
	}
	w.became = &readHold{lease: l, reads: w.reads}
	m.reads[w.owner] = w.became
	m.mu.Unlock()
}

// runlockInside takes one read level off a write hold, or off what that was downgraded to. mu is
// held, and is released. The hold need not be in the books: whoever waits for a condition has put
// it aside, to restore what is left of it.
func (m *holds) runlockInside(w *writeHold, leased bool) {
	if w.became != nil {
		m.runlock(w.owner, w.became, leased)
		return
	}
	w.reads.add(leased, -1)
	m.settle(w)
}

// runlock takes one level off a read hold. mu is held, and is released.
func (m *holds) runlock(o owner, r *readHold, leased bool) {
	r.reads.add(leased, -1)
	last := r.reads.all() == 0
	if last && m.reads[o] == r {
		delete(m.reads, o)
	}
	m.mu.Unlock()
	if last {
		_ = r.lease.Unlock()
	}
}

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
