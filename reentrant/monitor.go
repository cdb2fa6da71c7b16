package reentrant

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/nest"
	"github.com/go-menagerie/menagerie/zksync"
)

func init() {
	door.Monitors = append(door.Monitors, func(lock any) any {
		switch m := lock.(type) {
		case *Mutex:
			if m != nil {
				return door.Monitor[*zksync.Lease](monitor{door.MonitorOf[*zksync.Lease](m.m), m})
			}
		case *RWMutex:
			if m != nil {
				return door.Monitor[*zksync.Lease](monitor{door.MonitorOf[*zksync.Lease](m.rw), m})
			}
		}
		return nil
	})
}

// monitor is a condition's view of a reentrant lock: of the wrapped one, with levels.
type monitor struct {
	door.Monitor[*zksync.Lease] // of what is wrapped
	lock                        suspender
}

// suspender is a lock whose levels can be put aside.
type suspender interface {
	// find returns the hold that l is of, or a level of, or, without l, the one of the calling goroutine
	// that has levels of the mirror form; nil if there is none.
	find(l *zksync.Lease) aside
	// anyone is find for whoever may act under the hold: its owner, or, where there are leases,
	// anybody, because which goroutines use them nobody knows.
	anyone() aside
}

// aside is a hold whose levels can be put aside.
type aside interface {
	outer() *zksync.Lease
	// away takes the hold out of the books, before the servers know.
	away()
	// back puts it there again, under another lease of the wrapped lock. If no level is left, it releases
	// that within the time that a caller with ctx has.
	back(ctx context.Context, l *zksync.Lease)
	// lose counts its levels as lost.
	lose()
}

func (m monitor) Holder() *zksync.Lease {
	if h := m.lock.anyone(); h != nil {
		return h.outer()
	}
	return nil
}

func (m monitor) find(l *zksync.Lease) (aside, error) {
	h := m.lock.find(l)
	switch {
	case h == nil && l == nil:
		return nil, fmt.Errorf("%w: %v does not hold the lock; call Lock before", zksync.ErrMisuse, current())
	case h == nil:
		if err := l.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: the lease is not one of the condition's lock", zksync.ErrMisuse)
	}
	return h, nil
}

func (m monitor) Held(l *zksync.Lease) (*zksync.Lease, error) {
	h, err := m.find(l)
	if err != nil {
		return nil, err
	}
	return h.outer(), nil
}

func (m monitor) Suspend(ctx context.Context, l *zksync.Lease, seat door.Seat) (door.Suspension[*zksync.Lease], *zksync.Lease, error) {
	h, err := m.find(l)
	if err != nil {
		return nil, nil, err
	}
	if l != nil && l.Err() != nil { // this level has been given back
		return nil, nil, l.Err()
	}
	if l == h.outer() {
		l = nil // no level of its own, which would need another lease
	}
	h.away()
	s, kept, err := m.Monitor.Suspend(ctx, h.outer(), seat)
	switch {
	case s != nil:
		return &suspension{s, h, l}, nil, err
	case kept == h.outer(): // not even begun
		h.back(ctx, kept)
		if l != nil {
			kept = l
		}
		return nil, kept, err
	case kept != nil:
		return nil, restore(ctx, h, kept, l), err
	}
	h.lose()
	return nil, nil, err
}

// restore puts all levels under a new lease of the wrapped lock and returns that of the level
// that was l, without l the new lease itself.
func restore(ctx context.Context, h aside, outer, l *zksync.Lease) *zksync.Lease {
	h.back(ctx, outer)
	if l == nil {
		return outer
	}
	return nest.Move(ctx, l, outer)
}

// suspension is a hold with its levels while its owner waits.
type suspension struct {
	door.Suspension[*zksync.Lease]
	h aside
	l *zksync.Lease // whose level waits; nil for the hold as a whole
}

func (s *suspension) Regain(ctx context.Context) (*zksync.Lease, error) {
	outer, err := s.Suspension.Regain(ctx)
	if err != nil {
		return nil, err
	}
	return restore(ctx, s.h, outer, s.l), nil
}

func (s *suspension) Forfeit() {
	s.h.lose()
	s.Suspension.Forfeit()
}
