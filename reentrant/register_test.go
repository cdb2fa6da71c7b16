package reentrant

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zktest"
)

// A lost hold is being downgraded when another owner's Lock registers: the RUnlock that is still to come is owed.
func TestAHoldThatIsLostDuringItsDowngradeIsOwedWhenAnotherOwnerLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		m := NewRWMutex(zkrwmutex.New(s, "/locks/a"))
		began, locked := make(chan struct{}), make(chan struct{})
		toRead := m.toRead
		m.toRead = func(ctx context.Context, l *lease.Lease) (*lease.Lease, error) {
			close(began)
			<-locked
			return toRead(ctx, l)
		}
		said := make(chan any, 1)
		go func() {
			defer func() { said <- recover() }()
			l, err := m.LockContext(t.Context())
			require.NoError(t, err)
			m.RLock()
			srv.Expire(s.ID())
			<-l.Done()
			_ = l.Unlock()
			time.Sleep(time.Minute)
			m.RUnlock()
		}()
		<-began
		next, err := m.LockContext(t.Context())
		require.NoError(t, err)
		close(locked)
		require.Nil(t, <-said)
		require.True(t, m.HeldByCurrent())
		require.NoError(t, next.Unlock())
		require.Empty(t, m.lost)
	})
}

// A hold may be lost before its owner has registered it, and another owner's be granted and registered.
func TestAHoldThatWasLostBeforeItRegistersDoesNotReplaceItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		m := NewRWMutex(zkrwmutex.New(s, "/locks/a"))
		l, err := m.rw.LockContext(t.Context())
		require.NoError(t, err)
		late := &hold{owner: owner{number: -1}, lease: (*lease.Lease)(l), writes: levels{dropIn: 1}}
		srv.Expire(s.ID())
		m.Lock()
		m.mu.Lock()
		m.register(late)
		m.mu.Unlock()
		require.Equal(t, map[owner]lostLevels{late.owner: {writes: 1}}, m.lost)
		require.True(t, m.HeldByCurrent())
		m.Unlock()
		require.Nil(t, m.Lease())
	})
}
