package mutex_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// closedAfter has begin begin something in a session, closes the session after each of many short times, and looks that
// the next one is granted at once: nothing was lost.
func closedAfter(t *testing.T, opts []zksync.Option, begin func(v *proving.Env, m *zksync.Mutex)) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for after := time.Duration(0); after <= 40*time.Millisecond; after += time.Millisecond {
			path := fmt.Sprintf("/closed/%d", after.Milliseconds())
			s, err := v.Connect(t.Context())
			require.NoError(t, err)
			v.Server.Delay(s.ID(), 3*time.Millisecond, 4*time.Millisecond)
			begin(v, zksync.NewMutex(s, path, append(opts, zksync.WithLockDelay(lockDelay))...))
			time.Sleep(after)
			start := time.Now()
			require.NoError(t, s.Close())
			require.Less(t, time.Since(start), time.Second, "Close after %v", after)
			next := zksync.NewMutex(v.Session(), path, zksync.WithLockDelay(lockDelay))
			start = time.Now()
			l := v.Lock(next)
			require.Less(t, time.Since(start), time.Second, "the next one, when the session was closed after %v", after)
			require.NoError(t, l.Unlock())
			v.Left(path, 0, "released")
		}
	})
}

func TestCloseWhileAHoldIsHandedOnIsNoLoss(t *testing.T) {
	for _, handover := range []int{0, 1, 32} {
		closedAfter(t, []zksync.Option{zksync.WithHandover(handover)}, func(v *proving.Env, m *zksync.Mutex) {
			l := v.Lock(m)
			for range 2 {
				proving.Begin(context.Background(), m)
			}
			v.Quiet()
			require.NoError(v.T, l.Unlock())
		})
	}
}

func TestCloseWhileAHoldIsGrantedIsNoLoss(t *testing.T) {
	closedAfter(t, nil, func(_ *proving.Env, m *zksync.Mutex) { proving.Begin(context.Background(), m) })
}

func TestCloseWhileATryIsGrantedIsNoLoss(t *testing.T) {
	closedAfter(t, nil, func(_ *proving.Env, m *zksync.Mutex) { proving.Call(context.Background(), m.TryLockContext) })
}

func TestCloseWhileAHoldIsReleasedIsNoLoss(t *testing.T) {
	closedAfter(t, []zksync.Option{zksync.WithAsyncUnlock()}, func(v *proving.Env, m *zksync.Mutex) {
		require.NoError(v.T, v.Lock(m).Unlock())
	})
}

// The delay of each lock begins when it has been granted by its queue, and a MultiLock asks for one after the other.
func TestAMultiLockWaitsForTheDelaysOfItsLocksOneAfterTheOther(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		all := func(s *zksync.Session) *zksync.Multi {
			delay := zksync.WithLockDelay(lockDelay)
			return zksync.MultiLock(zksync.NewMutex(s, "/multi/a", delay), zksync.NewMutex(s, "/multi/b", delay))
		}
		holder := v.Session()
		_, err := all(holder).LockContext(t.Context())
		require.NoError(t, err)
		v.Expire(holder)
		start := time.Now()
		held, err := all(v.Session()).LockContext(t.Context())
		require.NoError(t, err)
		v.Took(start, 2*lockDelay, "the grant of both")
		require.NoError(t, held.Unlock())
	})
}
