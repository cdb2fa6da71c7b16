package reentrant

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/nest"
	"github.com/go-menagerie/menagerie/zksync"
)

// Mutex is a [zksync.Mutex] that its owner may lock again. It queues like that one,
// on the same paths and with the same others, Curator's InterProcessMutex among
// them. Share one Mutex per path in a process: two on one path do not know of each
// other's owners and exclude them. It is safe for use by many goroutines.
type Mutex struct {
	m *zksync.Mutex

	mu   sync.Mutex
	hold *hold // nil while nobody of this process holds
	// lost counts, per owner, the Unlocks of the mirror form still to come for holds
	// that were lost and have been replaced. They must not touch the hold that
	// replaced them.
	lost map[owner]int

	claims claims
}

// hold is one hold of the wrapped mutex, with all its levels.
type hold struct {
	owner  owner
	lease  *zksync.Lease
	levels int // not yet unlocked
	mirror int // of them, those of the mirror form
}

// NewMutex makes m reentrant. Use m itself no more.
//
// A nil m is reported by the first call as zksync.ErrMisuse.
func NewMutex(m *zksync.Mutex) *Mutex {
	if m == nil {
		m = zksync.NewMutex(nil, "/")
	}
	return &Mutex{m: m, lost: make(map[owner]int)}
}

// Lock locks m for the calling goroutine, or counts one level more if that goroutine
// holds it. A first level waits for ever and panics like [zksync.Mutex.Lock]; a
// further one returns at once. If the hold was lost meanwhile, Lock queues anew, and
// what it returns from is the first level of a new hold.
func (m *Mutex) Lock() {
	o := current()
	if m.again(context.Background(), o, true) != nil {
		return
	}
	defer m.claims.claim(context.Background(), o, false)()
	if m.again(context.Background(), o, true) != nil { // another goroutine of o has begun the hold
		return
	}
	m.m.Lock()
	m.enter(o, m.m.Lease(), true)
}

// TryLock is Lock without waiting: like [zksync.Mutex.TryLock] for a first level. It
// reports whether the calling goroutine holds one level more.
func (m *Mutex) TryLock() bool {
	o := current()
	if m.again(context.Background(), o, true) != nil {
		return true
	}
	if !m.m.TryLock() {
		return false
	}
	m.enter(o, m.m.Lease(), true)
	return true
}

// Unlock takes back the calling goroutine's last Lock; the last level gives the lock
// up, as [zksync.Lease.Unlock] does. It panics if the mutex is not locked, and if
// somebody else holds it, naming both. Unlocks that belong to levels of a hold that
// was lost have nothing to give up and return.
func (m *Mutex) Unlock() {
	o := current()
	m.mu.Lock()
	h := m.hold
	switch {
	case h != nil && h.owner == o && h.mirror > 0:
		// The levels of the newest hold first: it was taken inside those of a lost one.
		h.mirror--
		m.down(h) // unlocks mu
	case m.lost[o] > 0:
		if m.lost[o]--; m.lost[o] == 0 {
			delete(m.lost, o)
		}
		m.mu.Unlock()
	default:
		m.mu.Unlock()
		if h == nil {
			panic("reentrant: unlock of unlocked mutex")
		}
		panic(fmt.Sprintf("reentrant: unlock by %v of a mutex that %v holds", o, h.owner))
	}
}

// LockContext locks m for the owner in ctx ([WithOwner]), or else for the calling
// goroutine, and returns a lease of its own for this level: its Unlock gives back
// this level only. All leases of a hold share one token and end together when the
// hold is lost. A first level waits and fails like [zksync.Mutex.LockContext]; a
// further one returns at once. After a loss it queues anew and the lease is one of a
// new hold, with a greater token.
func (m *Mutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.acquire(ctx, m.m.LockContext, false)
}

// TryLockContext is LockContext without waiting for others: a first level fails like
// [zksync.Mutex.TryLockContext], with ErrNotAcquired if somebody else holds or waits.
func (m *Mutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	return m.acquire(ctx, m.m.TryLockContext, true)
}

func (m *Mutex) acquire(ctx context.Context, first getter, try bool) (*zksync.Lease, error) {
	o := ownerOf(ctx)
	if ctx.Err() != nil {
		return first(ctx) // for its error
	}
	h := m.again(ctx, o, false)
	if h == nil {
		end := m.claims.claim(ctx, o, try)
		switch {
		case end == nil && ctx.Err() != nil:
			return first(ctx)
		case end == nil:
			return nil, busy(o)
		}
		defer end()
		h = m.again(ctx, o, false) // the one who had the claim may have begun the hold
	}
	if h == nil {
		l, err := first(ctx)
		if err != nil {
			return nil, err
		}
		h = m.enter(o, l, false)
	}
	return nest.Lease(ctx, mutexHold{m, h}.outer(), func() {
		m.mu.Lock()
		m.down(h)
	}), nil
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
func (m *Mutex) HoldCount() int { return m.levels(current()) }

// HoldCountContext is HoldCount for the owner in ctx.
func (m *Mutex) HoldCountContext(ctx context.Context) int { return m.levels(ownerOf(ctx)) }

// HeldByCurrent reports whether the calling goroutine can be proved to hold m at this
// instant.
func (m *Mutex) HeldByCurrent() bool { return m.levels(current()) > 0 }

// HeldByOwner is HeldByCurrent for the owner in ctx.
func (m *Mutex) HeldByOwner(ctx context.Context) bool { return m.levels(ownerOf(ctx)) > 0 }

// Lease is the lease of the whole hold, whoever in this process has it; nil without
// one. Do not unlock it: that would end all levels.
func (m *Mutex) Lease() *zksync.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold == nil {
		return nil
	}
	return m.hold.lease
}

// Contenders lists who holds and who waits, like [zksync.Mutex.Contenders].
func (m *Mutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return m.m.Contenders(ctx)
}

func (m *Mutex) levels(o owner) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold == nil || m.hold.owner != o || !m.hold.lease.Valid() {
		return 0
	}
	return m.hold.levels
}

// again counts a further level if o holds, and returns its hold. It returns nil if o
// has to queue; what it held and lost is out of the way then.
func (m *Mutex) again(ctx context.Context, o owner, mirror bool) *hold {
	m.mu.Lock()
	h := m.hold
	if h == nil || h.owner != o {
		m.mu.Unlock()
		return nil
	}
	if h.lease.Valid() {
		h.levels++
		if mirror {
			h.mirror++
		}
		m.mu.Unlock()
		return h
	}
	m.replace(nil)
	m.mu.Unlock()
	// A lost hold of the mirror form keeps the goroutines of this process out until it
	// is unlocked. Its owner is here and about to queue, so it keeps nobody out.
	door.Release(ctx, h.lease)
	return nil
}

// enter begins a hold with its first level.
func (m *Mutex) enter(o owner, l *zksync.Lease, mirror bool) *hold {
	h := &hold{owner: o, lease: l, levels: 1}
	if mirror {
		h.mirror = 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replace(h)
	return h
}

// replace puts h in the place of a hold that was lost, if there is one, whose Unlocks
// are still to come. mu is held.
func (m *Mutex) replace(h *hold) {
	if old := m.hold; old != nil && old.mirror > 0 {
		m.lost[old.owner] += old.mirror
	}
	m.hold = h
}

// down takes one level off h and gives the lock up with the last one. mu is held, and
// is released.
func (m *Mutex) down(h *hold) {
	h.levels--
	last := h.levels == 0
	if last && m.hold == h {
		m.hold = nil // before the lock is given up, or the next holder's entry could be wiped out
	}
	l := h.lease
	m.mu.Unlock()
	if last {
		_ = l.Unlock() // a loss has been told through the leases
	}
}
