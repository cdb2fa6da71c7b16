package zkrwmutex

import (
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/share"
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
