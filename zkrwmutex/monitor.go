package zkrwmutex

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/zksync"
)

func init() {
	door.Monitors = append(door.Monitors, func(lock any) any {
		if rw, ok := lock.(*RWMutex); ok && rw != nil {
			return door.Monitor[*zksync.Lease](monitor{door.MonitorOf[*zksync.Lease](rw.write), rw})
		}
		return nil
	})
}

// monitor is a condition's view of the write side.
type monitor struct {
	door.Monitor[*zksync.Lease]
	rw *RWMutex
}

// Holder is that of the write side: readers may hold together, so what they see can change
// at any time.
func (m monitor) Holder() *zksync.Lease { return m.rw.write.Lease() }

func (m monitor) Held(l *zksync.Lease) (*zksync.Lease, error) {
	if l == nil {
		m.rw.mu.Lock()
		defer m.rw.mu.Unlock()
		if !m.rw.writing {
			return nil, fmt.Errorf("%w: the lock is not held for writing; call Lock before", zksync.ErrMisuse)
		}
	}
	return m.Monitor.Held(l)
}

func (m monitor) Suspend(ctx context.Context, l *zksync.Lease, seat door.Seat) (door.Suspension[*zksync.Lease], *zksync.Lease, error) {
	held, err := m.Held(l)
	if err != nil {
		return nil, nil, err
	}
	// Also if it is given by its lease: the hold through Lock is what it is.
	mirror := l == nil || m.rw.isMirror(l)
	if mirror {
		m.rw.left() // before the servers know, as in Unlock
	}
	s, kept, err := m.Monitor.Suspend(ctx, held, seat)
	switch {
	case mirror && s != nil:
		s = suspension{s, m.rw}
	case mirror && kept != nil:
		m.rw.entered()
	}
	return s, kept, err
}

// isMirror reports whether l is the lease of the hold through Lock.
func (rw *RWMutex) isMirror(l *zksync.Lease) bool {
	rw.mu.Lock()
	defer rw.mu.Unlock()
	return rw.writing && l == rw.write.Lease()
}

// suspension is that of a hold through Lock.
type suspension struct {
	door.Suspension[*zksync.Lease]
	rw *RWMutex
}

func (s suspension) Regain(ctx context.Context) (*zksync.Lease, error) {
	l, err := s.Suspension.Regain(ctx)
	if err == nil {
		s.rw.entered()
	}
	return l, err
}
