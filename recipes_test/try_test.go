package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance006TryLockTakesAFreeLock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(2)
		require.True(t, ms[0].TryLock())
		require.NotNil(t, ms[0].Lease())
		require.Len(t, v.children(lockPath), 1)
		ms[0].Unlock()
		v.left(lockPath, 0, "unlocked")

		l, err := ms[1].TryLockContext(context.Background())
		require.NoError(t, err)
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		v.left(lockPath, 0, "unlocked")
	})
}

func TestAcceptance006TryLockOnAHeldLockFailsAndLeavesNoNode(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		shared := v.session()
		holder := zksync.NewMutex(shared, lockPath)
		others := map[string]*zksync.Mutex{
			"the same handle":               holder,
			"another handle of the session": zksync.NewMutex(shared, lockPath),
			"another session":               zksync.NewMutex(v.session(), lockPath),
		}
		held := v.lock(holder)
		before := v.children(lockPath)
		require.Len(t, before, 1)
		for name, m := range others {
			require.False(t, m.TryLock(), name)
			_, err := m.TryLockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrNotAcquired, name)
			v.left(lockPath, len(before), name)
			require.Equal(t, before, v.children(lockPath), name)
		}
		require.NoError(t, held.Unlock())
		for name, m := range others {
			v.left(lockPath, 0, "unlocked")
			require.True(t, m.TryLock(), "after the release: %s", name)
			m.Unlock()
		}
	})
}

func TestAcceptance006TryLockDoesNotOvertakeAWaiter(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(3)
		held := v.lock(ms[0])
		waiter := v.line(ms[1])[0]
		require.False(t, ms[2].TryLock())
		require.NoError(t, held.Unlock())
		l := v.granted(waiter)
		require.False(t, ms[2].TryLock())
		require.NoError(t, l.Unlock())
		v.left(lockPath, 0, "unlocked")
		require.True(t, ms[2].TryLock())
		ms[2].Unlock()
	})
}

func TestAcceptance006OfManyTryLocksAtOnceAtMostOneWins(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(4)
		for range 20 {
			won := make(chan *zksync.Mutex, len(ms))
			for _, m := range ms {
				go func() {
					if m.TryLock() {
						won <- m
					} else {
						won <- nil
					}
				}()
			}
			var winners []*zksync.Mutex
			for range ms {
				if m := <-won; m != nil {
					winners = append(winners, m)
				}
			}
			require.LessOrEqual(t, len(winners), 1)
			for _, m := range winners {
				m.Unlock()
			}
			v.queued(lockPath, 0)
		}
	})
}
