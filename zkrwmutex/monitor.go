package zkrwmutex

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
		if rw, ok := lock.(*RWMutex); ok && rw != nil {
			return monitor{(*share.Cohort)(rw.write).Monitor(), rw}
		}
		return nil
	})
}

// monitor is a condition's view of the lock: that of its write lock, because readers hold together and
// cannot wait for a change. It implements share.DropInLocker.
type monitor struct {
	share.Monitor
	rw *RWMutex
}

func (m monitor) DropIn(read, try bool) (*lease.Lease, bool) {
	l, ok := m.rw.dropIn(read, try)
	return (*lease.Lease)(l), ok
}

func (m monitor) Held(l *lease.Lease) (*lease.Lease, error) {
	if l == nil {
		m.rw.mu.Lock()
		defer m.rw.mu.Unlock()
		if !m.rw.writing {
			return nil, fmt.Errorf("%w: the lock is not held for writing; call Lock before", zksync.ErrMisuse)
		}
	}
	return m.Monitor.Held(l)
}

func (m monitor) Suspend(ctx context.Context, l *lease.Lease, w queue.Replacement) (share.Suspension, *lease.Lease, error) {
	held, err := m.Held(l)
	if err != nil {
		return nil, nil, err
	}
	// l may also be the lease of the hold through Lock.
	dropIn := l == nil || m.rw.isDropIn(l)
	if dropIn {
		m.rw.left() // before the servers know, as in Unlock
	}
	s, kept, err := m.Monitor.Suspend(ctx, held, w)
	switch {
	case dropIn && s != nil:
		s = suspension{s, m.rw}
	case dropIn && kept != nil:
		m.rw.entered()
	}
	return s, kept, err
}

// isDropIn reports whether l is the lease of the hold through Lock.
func (rw *RWMutex) isDropIn(l *lease.Lease) bool {
	rw.mu.Lock()
	defer rw.mu.Unlock()
	return rw.writing && (*zksync.Lease)(l) == rw.write.Lease()
}

// suspension is the suspension of a hold through Lock.
type suspension struct {
	share.Suspension
	rw *RWMutex
}

func (s suspension) Regain(ctx context.Context) (*lease.Lease, error) {
	l, err := s.Suspension.Regain(ctx)
	if err == nil {
		s.rw.entered()
	}
	return l, err
}
