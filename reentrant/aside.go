package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/nest"
	"github.com/go-menagerie/menagerie/zksync"
)

// The holds of a Mutex.

func (m *Mutex) find(l *zksync.Lease) aside {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.hold
	switch {
	case h == nil:
		return nil
	case l == nil && h.owner == current() && h.mirror > 0, l != nil && of(l, h.lease):
		return mutexHold{m, h}
	}
	return nil
}

func (m *Mutex) anyone() aside {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.hold; h != nil && (h.owner == current() || h.levels > h.mirror) {
		return mutexHold{m, h}
	}
	return nil
}

// of reports whether l is the lease of a hold, or that of one of its levels.
func of(l, hold *zksync.Lease) bool {
	outer, nested := nest.Outer(l)
	return l == hold || nested && outer == hold
}

type mutexHold struct {
	m *Mutex
	h *hold
}

func (a mutexHold) outer() *zksync.Lease {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return a.h.lease
}

func (a mutexHold) away() {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	if a.m.hold == a.h {
		a.m.hold = nil
	}
}

func (a mutexHold) back(ctx context.Context, l *zksync.Lease) {
	a.m.mu.Lock()
	a.h.lease = l
	empty := a.h.levels == 0 // the leases of all levels were given back while it waited
	if !empty {
		a.m.replace(a.h)
	}
	a.m.mu.Unlock()
	if empty {
		door.Release(ctx, l)
	}
}

func (a mutexHold) lose() {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	if a.h.mirror > 0 {
		a.m.lost[a.h.owner] += a.h.mirror
	}
}

// The write holds of an RWMutex.

func (m *RWMutex) find(l *zksync.Lease) aside {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.write
	switch {
	case w == nil || w.writes.all() == 0:
		return nil
	case l == nil && w.owner == current() && w.writes.mirror > 0, l != nil && of(l, w.lease):
		return rwHold{m, w}
	}
	return nil
}

func (m *RWMutex) anyone() aside {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.write; w != nil && (w.writes.leased > 0 || w.writes.mirror > 0 && w.owner == current()) {
		return rwHold{m, w}
	}
	return nil
}

type rwHold struct {
	m *RWMutex
	w *writeHold
}

func (a rwHold) outer() *zksync.Lease {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return a.w.lease
}

func (a rwHold) away() {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	if a.m.write == a.w {
		a.m.write = nil
	}
}

func (a rwHold) back(ctx context.Context, l *zksync.Lease) {
	a.m.mu.Lock()
	a.w.lease = l
	empty := a.w.writes.all()+a.w.reads.all() == 0
	if !empty {
		a.m.replaceLost()
		a.m.write = a.w
	}
	a.m.mu.Unlock()
	if empty {
		door.Release(ctx, l)
	}
}

func (a rwHold) lose() {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.m.owe(a.w.owner, lostLevels{a.w.writes.mirror, a.w.reads.mirror})
}
