package zkrwmutex

import (
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/share"
)

// monitored makes the lock a zksync.Locker.
type monitored = share.Monitored

// monitor is a condition's view of the lock: that of its write lock, because readers hold together and
// cannot wait for a change. It implements share.DropInLocker.
type monitor struct {
	share.DropInLocker // of the write lock
	rw                 *RWMutex
}

func (m monitor) DropIn(read, try bool) (*lease.Lease, bool) {
	switch {
	case read && try:
		l, ok := m.rw.tryRead()
		return (*lease.Lease)(l), ok
	case read:
		return (*lease.Lease)(m.rw.lockRead()), true
	case !try:
		m.rw.read.Close()
	}
	return m.DropInLocker.DropIn(false, try)
}
