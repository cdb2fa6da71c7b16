package cond_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// dropIn is a lock that is locked with Lock, and whose lease bounds a wait: Java's
// await(time, unit).
type dropIn interface {
	zksync.Locker
	Lease() *zksync.Lease
}

var dropIns = map[string]func(s *zksync.Session) dropIn{
	"Mutex":             func(s *zksync.Session) dropIn { return zksync.NewMutex(s, proving.LockPath) },
	"RWMutex":           func(s *zksync.Session) dropIn { return zkrwmutex.New(s, proving.LockPath) },
	"reentrant Mutex":   func(s *zksync.Session) dropIn { return reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath)) },
	"reentrant RWMutex": func(s *zksync.Session) dropIn { return reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath)) },
}

// eachDropIn runs f with every kind of lock, locked to all the levels that it can have.
func eachDropIn(t *testing.T, f func(t *testing.T, v *proving.Env, m dropIn, levels int)) {
	t.Helper()
	for name, lock := range dropIns {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				m, levels := lock(v.Session()), 1
				m.Lock()
				if _, ok := m.(interface{ HoldCount() int }); ok {
					m.Lock()
					levels++
				}
				f(t, v, m, levels)
				v.Queued(proving.LockPath, 0)
				v.Queued(proving.CondPath, 0)
			})
		})
	}
}

func TestAcceptance038AnyLockThatWasLockedWithLockWaitsUnderItsLease(t *testing.T) {
	proving.Together(t)
	eachDropIn(t, func(t *testing.T, v *proving.Env, m dropIn, levels int) {
		c := zkcond.New(m, proving.CondPath)
		other := zksync.NewMutex(v.Session(), proving.LockPath)
		ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
		defer cancel()
		before := m.Lease()
		a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, before) })
		v.Queued(proving.CondPath, 1)
		signaller := v.Lock(other)
		require.NoError(t, zkcond.New(other, proving.CondPath).SignalContext(ctx, signaller))
		require.NoError(t, signaller.Unlock())
		l := v.Granted(a)
		require.ErrorIs(t, before.Err(), zksync.ErrReleased)
		require.True(t, l.Valid())
		require.Same(t, l, m.Lease())
		require.NoError(t, c.SignalContext(ctx, l), "under the same lease")
		if n, ok := m.(interface{ HoldCount() int }); ok {
			require.Equal(t, levels, n.HoldCount())
		}
		for range levels {
			require.True(t, l.Valid())
			m.Unlock()
		}
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		_, err := c.WaitContext(ctx, l)
		require.ErrorIs(t, err, zksync.ErrReleased)
	})
}

func TestAcceptance041AWaitUnderTheLeaseOfAnyLockEndsInTime(t *testing.T) {
	proving.Together(t)
	eachDropIn(t, func(t *testing.T, v *proving.Env, m dropIn, levels int) {
		c := zkcond.New(m, proving.CondPath)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		l, err := c.WaitContext(ctx, m.Lease())
		v.Took(start, time.Second, "WaitContext")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if l == nil && !v.Virtual { // a real server may take longer than the call waits for it
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			return
		}
		require.NotNil(t, l, err)
		require.Same(t, m.Lease(), l)
		for range levels {
			require.True(t, l.Valid())
			m.Unlock()
		}
	})
}

// The Unlocks of the levels that were not regained have nothing to give up.
func TestAReentrantLockThatIsNotRegainedInTimeIsUnlockedAsOften(t *testing.T) {
	proving.Together(t)
	for _, name := range []string{"reentrant Mutex", "reentrant RWMutex"} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				m, other := dropIns[name](v.Session()), zksync.NewMutex(v.Session(), proving.LockPath)
				m.Lock()
				m.Lock()
				c := zkcond.New(m, proving.CondPath)
				next := proving.Begin(context.Background(), other)
				v.Settled(proving.LockPath, 2)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				l, err := c.WaitContext(ctx, m.Lease())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
				require.Nil(t, l)
				require.Nil(t, m.Lease())
				m.Unlock()
				require.NoError(t, v.Granted(next).Unlock())
				m.Lock()
				m.Unlock()
				m.Unlock() // the second one of the lost hold
				require.Panics(t, m.Unlock)
				v.Queued(proving.LockPath, 0)
				v.Queued(proving.CondPath, 0)
			})
		})
	}
}
