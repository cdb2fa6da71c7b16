package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/share"
)

// monitored makes the locks zksync.Lockers.
type monitored = share.Monitored

// monitor is a condition's view of a reentrant lock: that of the wrapped lock, with levels.
type monitor struct {
	share.Monitor // of the wrapped lock
	holds         *holds
}

// Holder is the lease of a hold that the caller may act under: that of its owner or, if the hold has leases, that of
// any goroutine, because nobody knows which goroutines use them.
func (m monitor) Holder() *lease.Lease {
	m.holds.mu.Lock()
	defer m.holds.mu.Unlock()
	if w := m.holds.write; w != nil && (w.writes.leased > 0 || w.writes.dropIn > 0 && w.owner == current()) {
		return w.lease
	}
	return nil
}

func (m monitor) find(l *lease.Lease) (*hold, error) {
	w := m.holds.find(l)
	switch {
	case w == nil && l == nil:
		return nil, errs.Misuse("%v does not hold the lock; call Lock before", current())
	case w == nil:
		if err := l.Err(); err != nil {
			return nil, err
		}
		return nil, errs.Misuse("the lease is not one of the condition's lock")
	}
	return w, nil
}

func (m monitor) Held(l *lease.Lease) (*lease.Lease, error) {
	w, err := m.find(l)
	if err != nil {
		return nil, err
	}
	return m.holds.outer(w), nil
}

func (m monitor) Suspend(ctx context.Context, level *lease.Lease, waiter queue.Replacement) (share.Suspension, *lease.Lease, error) {
	w, err := m.find(level)
	if err != nil {
		return nil, nil, err
	}
	if level != nil && level.Err() != nil { // this level was unlocked
		return nil, nil, level.Err()
	}
	outer, own := m.holds.outer(w), level
	if level == outer {
		own = nil // no level of its own, which would need another lease
	}
	m.holds.away(w)
	s, kept, err := m.Monitor.Suspend(ctx, outer, waiter)
	switch {
	case s != nil:
		return &suspension{s, m.holds, w, own}, nil, err
	case kept == outer: // not even begun
		m.holds.back(ctx, w, outer)
		if own != nil {
			kept = own
		}
		return nil, kept, err
	case kept != nil:
		return nil, m.holds.restore(ctx, w, kept, own), err
	}
	m.holds.lose(w)
	return nil, nil, err
}

// restore puts all levels under a new lease of the wrapped lock. It returns the lease of the level
// that was l; without l the new lease itself.
func (m *holds) restore(ctx context.Context, w *hold, outer, l *lease.Lease) *lease.Lease {
	m.back(ctx, w, outer)
	if l == nil {
		return outer
	}
	return l.Move(ctx, outer)
}

// suspension is a hold with its levels while its owner waits.
type suspension struct {
	share.Suspension
	m *holds
	w *hold
	l *lease.Lease // of the level that waits; nil for the hold as a whole
}

func (s *suspension) Regain(ctx context.Context) (*lease.Lease, error) {
	outer, err := s.Suspension.Regain(ctx)
	if err != nil {
		return nil, err
	}
	return s.m.restore(ctx, s.w, outer, s.l), nil
}

func (s *suspension) Abandon() {
	s.m.lose(s.w)
	s.Suspension.Abandon()
}

// find returns the write hold of l, or of which l is a level. Without l it returns that of the calling
// goroutine, if it has levels of the drop-in form. It returns nil if there is none.
func (m *holds) find(l *lease.Lease) *hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.write
	switch {
	case w == nil || w.writes.all() == 0:
		return nil
	case l == nil && w.owner == current() && w.writes.dropIn > 0, l != nil && within(l, w.lease):
		return w
	}
	return nil
}

// within reports whether l is the lease of a hold, or that of one of its levels.
func within(l, hold *lease.Lease) bool {
	outer, nested := l.Outer()
	return l == hold || nested && outer == hold
}

func (m *holds) outer(h *hold) *lease.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return h.lease
}

// away unregisters a hold, before the servers release it.
func (m *holds) away(w *hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(w)
}

// back registers a hold again, under another lease of the wrapped lock. If no level is left, it
// releases that lease within the time of a caller with ctx.
func (m *holds) back(ctx context.Context, w *hold, l *lease.Lease) {
	m.mu.Lock()
	w.lease = l
	empty := w.empty() // the leases of all levels were unlocked during the wait
	if !empty {
		m.register(w)
	}
	m.mu.Unlock()
	if empty {
		_ = l.UnlockWithin(ctx)
	}
}

// lose counts the levels of a hold as lost.
func (m *holds) lose(w *hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owe(w.owner, w.writes.dropIn, w.reads.dropIn)
}
