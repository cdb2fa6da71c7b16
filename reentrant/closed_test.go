package reentrant

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// closing is a lock whose session is closed just after a grant.
type closing struct {
	share.DropInLocker
	closed *bool
}

func (c closing) DropIn(read, try bool) (*lease.Lease, bool) {
	l, ok := c.DropInLocker.DropIn(read, try)
	*c.closed = c.At().Session.Close() == nil
	return l, ok
}

// Close ends the lease, and takes it from the wrapped lock's Lease, before the reentrant lock has registered the hold.
func TestALockThatIsGrantedAsItsSessionIsClosedMayBeUnlocked(t *testing.T) {
	for name, do := range map[string]func(m *Mutex, rw *RWMutex){
		"Lock":             func(m *Mutex, _ *RWMutex) { m.Lock(); m.Unlock() },
		"TryLock":          func(m *Mutex, _ *RWMutex) { m.TryLock(); m.Unlock() },
		"RWMutex.Lock":     func(_ *Mutex, rw *RWMutex) { rw.Lock(); rw.Unlock() },
		"RWMutex.TryLock":  func(_ *Mutex, rw *RWMutex) { rw.TryLock(); rw.Unlock() },
		"RWMutex.RLock":    func(_ *Mutex, rw *RWMutex) { rw.RLock(); rw.RUnlock() },
		"RWMutex.TryRLock": func(_ *Mutex, rw *RWMutex) { rw.TryRLock(); rw.RUnlock() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := zktest.Run(t).Session(t)
				m, rw := NewMutex(zksync.NewMutex(s, "/locks/a")), NewRWMutex(zkrwmutex.New(s, "/locks/b"))
				var closed bool
				m.wrapped, rw.wrapped = closing{m.wrapped, &closed}, closing{rw.wrapped, &closed}
				do(m, rw)
				require.True(t, closed)
			})
		})
	}
}
