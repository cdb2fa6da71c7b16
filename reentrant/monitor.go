package reentrant

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

func init() {
	share.RegisterMonitor(func(lock any) share.Monitor {
		switch m := lock.(type) {
		case *Mutex:
			if m != nil {
				return monitor{m.holds.wrapped, m.holds}
			}
		case *RWMutex:
			if m != nil {
				return monitor{m.holds.wrapped, m.holds}
			}
		}
		return nil
	})
}

// monitor is a condition's view of a reentrant lock: of the wrapped one, with levels.
type monitor struct {
	share.Monitor // of what is wrapped
	holds         *holds
}

func (m monitor) Holder() *lease.Lease {
	if w := m.holds.anyone(); w != nil {
		return (*lease.Lease)(m.holds.outer(w))
	}
	return nil
}

func (m monitor) find(l *zksync.Lease) (*writeHold, error) {
	w := m.holds.find(l)
	switch {
	case w == nil && l == nil:
		return nil, fmt.Errorf("%w: %v does not hold the lock; call Lock before", zksync.ErrMisuse, current())
	case w == nil:
		if err := l.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: the lease is not one of the condition's lock", zksync.ErrMisuse)
	}
	return w, nil
}

func (m monitor) Held(l *lease.Lease) (*lease.Lease, error) {
	w, err := m.find((*zksync.Lease)(l))
	if err != nil {
		return nil, err
	}
	return (*lease.Lease)(m.holds.outer(w)), nil
}

func (m monitor) Suspend(ctx context.Context, level *lease.Lease, waiter queue.Replacement) (share.Suspension, *lease.Lease, error) {
	l := (*zksync.Lease)(level)
	w, err := m.find(l)
	if err != nil {
		return nil, nil, err
	}
	if l != nil && l.Err() != nil { // this level has been given back
		return nil, nil, l.Err()
	}
	outer := m.holds.outer(w)
	if l == outer {
		l = nil // no level of its own, which would need another lease
	}
	m.holds.away(w)
	s, kept, err := m.Monitor.Suspend(ctx, (*lease.Lease)(outer), waiter)
	switch {
	case s != nil:
		return &suspension{s, m.holds, w, l}, nil, err
	case kept == (*lease.Lease)(outer): // not even begun
		m.holds.back(ctx, w, outer)
		if l != nil {
			kept = level
		}
		return nil, kept, err
	case kept != nil:
		return nil, (*lease.Lease)(m.holds.restore(ctx, w, (*zksync.Lease)(kept), l)), err
	}
	m.holds.lose(w)
	return nil, nil, err
}

// restore puts all levels under a new lease of the wrapped lock and returns that of the level
// that was l, without l the new lease itself.
func (m *holds) restore(ctx context.Context, w *writeHold, outer, l *zksync.Lease) *zksync.Lease {
	m.back(ctx, w, outer)
	if l == nil {
		return outer
	}
	return (*zksync.Lease)((*lease.Lease)(l).Move(ctx, (*lease.Lease)(outer)))
}

// suspension is a hold with its levels while its owner waits.
type suspension struct {
	share.Suspension
	m *holds
	w *writeHold
	l *zksync.Lease // whose level waits; nil for the hold as a whole
}

func (s *suspension) Regain(ctx context.Context) (*lease.Lease, error) {
	outer, err := s.Suspension.Regain(ctx)
	if err != nil {
		return nil, err
	}
	return (*lease.Lease)(s.m.restore(ctx, s.w, (*zksync.Lease)(outer), s.l)), nil
}

func (s *suspension) Abandon() {
	s.m.lose(s.w)
	s.Suspension.Abandon()
}

// find returns the write hold that l is of, or a level of, or, without l, the one of the calling
// goroutine that has levels of the mirror form; nil if there is none.
func (m *holds) find(l *zksync.Lease) *writeHold {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.write
	switch {
	case w == nil || w.writes.all() == 0:
		return nil
	case l == nil && w.owner == current() && w.writes.mirror > 0, l != nil && of(l, w.lease):
		return w
	}
	return nil
}

// anyone is find for whoever may act under the hold: its owner, or, where there are leases,
// anybody, because which goroutines use them nobody knows.
func (m *holds) anyone() *writeHold {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.write; w != nil && (w.writes.leased > 0 || w.writes.mirror > 0 && w.owner == current()) {
		return w
	}
	return nil
}

func (m *holds) outer(w *writeHold) *zksync.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return w.lease
}

// away takes a hold out of the books, before the servers know.
func (m *holds) away(w *writeHold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.write == w {
		m.write = nil
	}
}

// back puts a hold there again, under another lease of the wrapped lock. If no level is left, it
// releases that within the time that a caller with ctx has.
func (m *holds) back(ctx context.Context, w *writeHold, l *zksync.Lease) {
	m.mu.Lock()
	w.lease = l
	empty := w.writes.all()+w.reads.all() == 0 // the leases of all levels were given back while it waited
	if !empty {
		m.replaceLost()
		m.write = w
	}
	m.mu.Unlock()
	if empty {
		release(ctx, l)
	}
}

// lose counts the levels of a hold as lost.
func (m *holds) lose(w *writeHold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owe(w.owner, lostLevels{w.writes.mirror, w.reads.mirror})
}

// of reports whether l is the lease of a hold, or that of one of its levels.
func of(l, hold *zksync.Lease) bool {
	outer, nested := outerOf(l)
	return l == hold || nested && outer == hold
}
