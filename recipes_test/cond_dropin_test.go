package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// dropIn is a lock that is locked with Lock, and whose lease bounds a wait: Java's
// await(time, unit).
type dropIn interface {
	Lock()
	Unlock()
	Lease() *zksync.Lease
}

var dropIns = map[string]func(s *zksync.Session) dropIn{
	"Mutex":             func(s *zksync.Session) dropIn { return zksync.NewMutex(s, lockPath) },
	"RWMutex":           func(s *zksync.Session) dropIn { return zkrwmutex.New(s, lockPath) },
	"reentrant Mutex":   func(s *zksync.Session) dropIn { return reentrant.NewMutex(zksync.NewMutex(s, lockPath)) },
	"reentrant RWMutex": func(s *zksync.Session) dropIn { return reentrant.NewRWMutex(zkrwmutex.New(s, lockPath)) },
}

// eachDropIn runs f with every kind of lock, locked to all the levels that it can have.
func eachDropIn(t *testing.T, f func(t *testing.T, v *env, m dropIn, levels int)) {
	t.Helper()
	for name, lock := range dropIns {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				m, levels := lock(v.session()), 1
				m.Lock()
				if _, ok := m.(interface{ HoldCount() int }); ok {
					m.Lock()
					levels++
				}
				f(t, v, m, levels)
				v.queued(lockPath, 0)
				v.queued(condPath, 0)
			})
		})
	}
}

func TestAcceptance038AnyLockThatWasLockedWithLockWaitsUnderItsLease(t *testing.T) {
	eachDropIn(t, func(t *testing.T, v *env, m dropIn, levels int) {
		c := zkcond.New(m, condPath)
		other := zksync.NewMutex(v.session(), lockPath)
		ctx, cancel := context.WithTimeout(context.Background(), v.patience())
		defer cancel()
		before := m.Lease()
		a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, before) })
		v.queued(condPath, 1)
		signaller := v.lock(other)
		require.NoError(t, zkcond.New(other, condPath).SignalContext(ctx, signaller))
		require.NoError(t, signaller.Unlock())
		l := v.granted(a)
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
	eachDropIn(t, func(t *testing.T, v *env, m dropIn, levels int) {
		c := zkcond.New(m, condPath)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		l, err := c.WaitContext(ctx, m.Lease())
		v.took(start, time.Second, "WaitContext")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if l == nil && !v.virtual { // a real server may take longer than the call waits for it
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
	for _, name := range []string{"reentrant Mutex", "reentrant RWMutex"} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				m, other := dropIns[name](v.session()), zksync.NewMutex(v.session(), lockPath)
				m.Lock()
				m.Lock()
				c := zkcond.New(m, condPath)
				next := begin(context.Background(), other)
				v.settled(lockPath, 2)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				l, err := c.WaitContext(ctx, m.Lease())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
				require.Nil(t, l)
				require.Nil(t, m.Lease())
				m.Unlock()
				require.NoError(t, v.granted(next).Unlock())
				m.Lock()
				m.Unlock()
				m.Unlock() // the second one of the lost hold
				require.Panics(t, m.Unlock)
				v.queued(lockPath, 0)
				v.queued(condPath, 0)
			})
		})
	}
}
