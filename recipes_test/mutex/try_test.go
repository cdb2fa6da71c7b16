package mutex_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance006TryLockTakesAFreeLock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		require.True(t, ms[0].TryLock())
		require.NotNil(t, ms[0].Lease())
		require.Len(t, v.Children(proving.LockPath), 1)
		ms[0].Unlock()
		v.Left(proving.LockPath, 0, "unlocked")

		l, err := ms[1].TryLockContext(context.Background())
		require.NoError(t, err)
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		v.Left(proving.LockPath, 0, "unlocked")
	})
}

func TestAcceptance006TryLockOnAHeldLockFailsAndLeavesNoNode(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		shared := v.Session()
		holder := zksync.NewMutex(shared, proving.LockPath)
		others := map[string]*zksync.Mutex{
			"the same handle":               holder,
			"another handle of the session": zksync.NewMutex(shared, proving.LockPath),
			"another session":               zksync.NewMutex(v.Session(), proving.LockPath),
		}
		held := v.Lock(holder)
		before := v.Children(proving.LockPath)
		require.Len(t, before, 1)
		for name, m := range others {
			require.False(t, m.TryLock(), name)
			_, err := m.TryLockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrNotAcquired, name)
			v.Left(proving.LockPath, len(before), name)
			require.Equal(t, before, v.Children(proving.LockPath), name)
		}
		require.NoError(t, held.Unlock())
		for name, m := range others {
			v.Left(proving.LockPath, 0, "unlocked")
			require.True(t, m.TryLock(), "after the release: %s", name)
			m.Unlock()
		}
	})
}

func TestAcceptance006TryLockDoesNotOvertakeAWaiter(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(3)
		held := v.Lock(ms[0])
		waiter := v.Line(ms[1])[0]
		require.False(t, ms[2].TryLock())
		require.NoError(t, held.Unlock())
		l := v.Granted(waiter)
		require.False(t, ms[2].TryLock())
		require.NoError(t, l.Unlock())
		v.Left(proving.LockPath, 0, "unlocked")
		require.True(t, ms[2].TryLock())
		ms[2].Unlock()
	})
}

func TestAcceptance006OfManyTryLocksAtOnceAtMostOneWins(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(4)
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
			v.Queued(proving.LockPath, 0)
		}
	})
}
