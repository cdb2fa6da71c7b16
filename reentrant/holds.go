package reentrant

import (
	"context"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// holds are the holds of one lock in this process, with all levels. In those of a Mutex nobody reads.
type holds struct {
	monitored
	wrapped share.DropInLocker // of a *zksync.Mutex or a *zkrwmutex.RWMutex
	// toRead downgrades a lease of the wrapped lock.
	toRead func(context.Context, *lease.Lease) (*lease.Lease, error)

	mu    sync.Mutex
	write *hold // nil while nobody of this process writes
	reads map[owner]*hold
	// claims keep the goroutines of one owner from beginning a hold at the same time: each would
	// queue, and the second would wait for its own owner. Closed when the claim ends.
	claims map[owner]chan struct{}
	// lost counts the Unlocks and RUnlocks that are still to come for holds that were
	// lost and replaced. They must not touch the hold that replaced the lost one.
	lost map[owner]lostLevels
	// discarded is closed when the latest lost hold that was replaced has been given up; nil if there was none.
	discarded chan struct{}
}

func newHolds(wrapped share.Monitor, toRead func(context.Context, *lease.Lease) (*lease.Lease, error)) *holds {
	m := &holds{wrapped: wrapped.(share.DropInLocker), toRead: toRead,
		reads: make(map[owner]*hold), claims: make(map[owner]chan struct{}), lost: make(map[owner]lostLevels)}
	m.monitored = share.AsMonitor(monitor{wrapped, m})
	wrapped.At().Package = "reentrant"
	return m
}

type lostLevels struct{ writes, reads int }

type getter func(context.Context) (*zksync.Lease, error)

// leased adds a level of the form with leases, and returns its lease.
func (m *holds) leased(ctx context.Context, first getter, f form) (*zksync.Lease, error) {
	f.leased = true
	h, err := m.acquire(ctx, ownerOf(ctx), first, f)
	if err != nil {
		return nil, err
	}
	return (*zksync.Lease)(lease.Sub(ctx, m.outer(h), func() {
		m.mu.Lock()
		m.takeBack(h, f)
	})), nil
}

// first gets the lease of a first level of the drop-in form. It panics like the wrapped lock.
func (m *holds) first(read, try bool) getter {
	return func(context.Context) (*zksync.Lease, error) {
		l, ok := m.wrapped.DropIn(read, try)
		if !ok {
			return nil, zksync.ErrNotAcquired
		}
		return (*zksync.Lease)(l), nil
	}
}

// dropIn adds a level of the drop-in form.
func (m *holds) dropIn(first getter, f form) error {
	_, err := m.acquire(context.Background(), current(), first, f)
	return err
}

// acquire adds a level to the hold of o. If o has none, it gets a first lease and
// begins a hold. One goroutine of o at a time does that.
func (m *holds) acquire(ctx context.Context, o owner, first getter, f form) (*hold, error) {
	if ctx.Err() != nil {
		_, err := first(ctx) // for its error
		return nil, err
	}
	h, claim, err := m.again(ctx, o, f)
	switch {
	case h != nil || err != nil:
		return h, err
	case claim == nil: // ctx has ended
		_, err := first(ctx)
		return nil, err
	}
	defer func() { // also if first panics
		m.mu.Lock()
		delete(m.claims, o)
		m.mu.Unlock()
		close(claim)
	}()
	m.clear(ctx)
	l, err := first(ctx)
	if err != nil {
		return nil, err
	}
	h = &hold{owner: o, lease: (*lease.Lease)(l)}
	h.add(f, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replaceOwn(o)
	if f.read {
		m.reads[o] = h
		return h, nil
	}
	m.register(h)
	return h, nil
}

// again adds a level to the hold of o. If o has none, it returns a claim of o, for which it waits while another
// goroutine of o has one. It returns nothing if ctx ends first.
func (m *holds) again(ctx context.Context, o owner, f form) (*hold, chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ctx.Err() == nil {
		m.replaceOwn(o)
		h, taken := m.of(o), m.claims[o]
		switch {
		case h != nil && f.read && f.leased && h.replacing != nil: // its lease, and those of its levels, are about to end
			taken = h.replacing
		case h != nil && (f.read || h.writes.all() > 0):
			h.add(f, 1)
			return h, nil, nil
		case h != nil && h.reads.all() > 0:
			return nil, nil, m.refused(o, f)
		case taken == nil:
			claim := make(chan struct{})
			m.claims[o] = claim
			return nil, claim, nil
		case f.try:
			return nil, nil, m.busy(o)
		}
		m.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
		}
		m.mu.Lock()
	}
	return nil, nil, nil
}

// of is the hold of o; nil if it has none. mu is held.
func (m *holds) of(o owner) *hold {
	if m.write != nil && m.write.owner == o {
		return m.write
	}
	return m.reads[o]
}

// remove unregisters h. mu is held.
func (m *holds) remove(h *hold) {
	if m.write == h {
		m.write = nil
	}
	if m.reads[h.owner] == h {
		delete(m.reads, h.owner)
	}
}

// replaceOwn unregisters the holds of o that were lost. mu is held.
func (m *holds) replaceOwn(o owner) {
	if m.write != nil && m.write.owner == o {
		m.replaceLost(m.write)
	}
	m.replaceLost(m.reads[o])
}

// replaceLost unregisters h if it was lost. mu is held.
func (m *holds) replaceLost(h *hold) {
	if h != nil && !h.valid() {
		m.discard(h)
	}
}

// register registers h, which got the lock for writing. If there is another hold, the one that was granted before was
// lost, even if its downgrade or its owner has not heard of that yet. mu is held.
func (m *holds) register(h *hold) {
	old := m.write
	if old != nil && old.lease.Token().Compare(h.lease.Token()) > 0 {
		old, h = h, old
	}
	if old != nil {
		m.discard(old)
	}
	m.write = h
}

// discard unregisters h, which was lost. mu is held.
func (m *holds) discard(h *hold) {
	m.owe(h.owner, h.writes.dropIn, h.reads.dropIn)
	m.remove(h)
	// A lost hold of the drop-in form keeps the goroutines of this process out until it is
	// unlocked. Its owner is here and about to queue, so it must keep nobody out. The Unlock runs in the
	// background, because it may take a second without a connection, and mu is held.
	done := make(chan struct{})
	m.discarded = done
	f := func() {
		defer close(done)
		_ = h.lease.Unlock()
	}
	if !m.wrapped.At().Session.Spawn(f) {
		go f() // it ends with the session, which is being closed
	}
}

// clear waits until the latest lost hold has been given up.
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

// owe counts levels of the drop-in form that were lost: their Unlocks are still to come. A
// lease's own Unlock needs no count. mu is held.
func (m *holds) owe(o owner, writes, reads int) {
	l := m.lost[o]
	l.writes += writes
	l.reads += reads
	if m.lost[o] = l; l == (lostLevels{}) {
		delete(m.lost, o)
	}
}

// made panics if the lock that has m is a zero value.
func (m *holds) made() {
	if m == nil {
		panic(errs.Unmade("reentrant", "a lock", "NewMutex or NewRWMutex"))
	}
}

// held is how many levels o holds; none if its hold was lost.
func (m *holds) held(o owner) (writes, reads int) {
	m.made()
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of(o)
	if h == nil || !h.valid() {
		return 0, 0
	}
	return h.writes.all(), h.reads.all()
}

// HoldCount is how many levels the calling goroutine holds, in the drop-in form and, without an owner in the
// context, in the context form; 0 if the hold was lost.
func (m *holds) HoldCount() int {
	n, _ := m.held(current())
	return n
}

// HoldCountContext is HoldCount for the owner in ctx.
func (m *holds) HoldCountContext(ctx context.Context) int {
	n, _ := m.held(ownerOf(ctx))
	return n
}

// HeldByCurrent reports whether the calling goroutine can be proved to hold the lock at this instant, an RWMutex
// for writing.
func (m *holds) HeldByCurrent() bool { return m.HoldCount() > 0 }

// HeldByOwner is HeldByCurrent for the owner in ctx.
func (m *holds) HeldByOwner(ctx context.Context) bool { return m.HoldCountContext(ctx) > 0 }

// Lease is the lease of the calling goroutine's whole hold, or else of any goroutine of this process that holds
// the lock (an RWMutex for writing); nil without either. Do not unlock it: that would end all levels.
func (m *holds) Lease() *zksync.Lease {
	m.made()
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of(current())
	if h == nil {
		h = m.write
	}
	if h == nil {
		return nil
	}
	return (*zksync.Lease)(h.lease)
}

// tried reports whether a Try form succeeded. It panics on errors that another try would
// not change.
func tried(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, zksync.ErrNotAcquired), errors.Is(err, zksync.ErrUpgrade):
		return false
	}
	panic(err)
}
