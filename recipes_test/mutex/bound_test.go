package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// afterBound checks an instant that follows from the bound of a hold. In real time start is before the
// requests of the lock itself, and others follow; what matters is that anything ends an endless hold.
func afterBound(v *proving.Env, start time.Time, bound time.Duration, what string) {
	v.T.Helper()
	if v.Virtual {
		v.Took(start, bound, what)
		return
	}
	require.GreaterOrEqual(v.T, time.Since(start), bound, what)
}

func TestAMaximumHoldEndsTheLeaseAndGrantsTheNext(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bound := v.Ample(700 * time.Millisecond) // to unlock in, at the end
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithMaxHold(bound))
		other := v.Mutexes(1)[0]
		start := time.Now()
		l := v.Lock(m)
		told := l.Done()
		next := proving.Begin(context.Background(), other) // which, on a busy machine, may queue too late to wait
		v.Awaits(told, "the holder to be told")
		afterBound(v, start, bound, "the hold")
		require.ErrorIs(t, l.Err(), zksync.ErrMaxHold)
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrMaxHold)
		require.False(t, l.Valid())
		_, err := l.Guard(t.Context(), proving.Write("late"))
		require.ErrorIs(t, err, zksync.ErrMaxHold)
		after := v.Granted(next)
		afterBound(v, start, bound, "the next grant")
		require.Positive(t, after.Token().Compare(l.Token()))
		require.ErrorIs(t, l.Unlock(), zksync.ErrMaxHold)
		require.True(t, after.Valid(), "the late unlock must not touch it")
		require.NoError(t, after.Unlock())
		require.NoError(t, v.Lock(m).Unlock(), "released in time")
	})
}

// The process is kept out until its own Unlock, since its critical section runs on; others are not.
func TestAMaximumHoldOfTheMirrorFormLetsOthersInButNotThisProcess(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		const bound = 500 * time.Millisecond
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithMaxHold(bound))
		distant := v.Mutexes(1)[0]
		start := time.Now()
		m.Lock()
		l := m.Lease()
		local := proving.Begin(context.Background(), m)
		v.Quiet()
		other := v.Granted(proving.Begin(context.Background(), distant))
		afterBound(v, start, bound, "the next grant")
		require.ErrorIs(t, l.Err(), zksync.ErrMaxHold)
		require.True(t, local.Pending())
		require.NoError(t, other.Unlock())
		v.Queued(proving.LockPath, 0)
		v.Quiet()
		require.True(t, local.Pending(), "two critical sections in one process")
		m.Unlock()
		require.NoError(t, v.Granted(local).Unlock())
	})
}

func TestAMaximumHoldBoundsEveryHandoverAnew(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const bound = 500 * time.Millisecond
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithMaxHold(bound))
		first := v.Lock(m)
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		time.Sleep(5 * time.Millisecond)
		require.NoError(t, first.Unlock())
		l := v.Granted(next)
		require.Equal(t, first.Node(), l.Node(), "handed over")
		start := next.At
		<-l.Done()
		v.Took(start, bound, "the second hold")
		require.ErrorIs(t, l.Err(), zksync.ErrMaxHold)
		require.ErrorIs(t, first.Err(), zksync.ErrReleased)
		v.Queued(proving.LockPath, 0)
		require.ErrorIs(t, l.Unlock(), zksync.ErrMaxHold)
	})
}

func TestALingeringPlaceIsGivenUpWhenItsTimeIsOver(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const linger = 2 * time.Second
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(linger))
		require.NoError(t, v.Lock(m).Unlock())
		start := time.Now()
		v.Quiet()
		zktest.CheckChildren(t, v.Server, proving.LockPath, v.Children(proving.LockPath)...)
		require.Len(t, v.Children(proving.LockPath), 1)
		v.Queued(proving.LockPath, 0)
		v.Took(start, linger, "lingering")
	})
}

// The remote one queues behind an idle place, whose owner is told at once and goes.
func TestALingeringPlaceIsGivenUpAsSoonAsSomebodyQueues(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(time.Hour))
		other := v.Mutexes(1)[0]
		for range 3 {
			l := v.Lock(m)
			require.NoError(t, l.Unlock())
			v.Quiet()
			require.Len(t, v.Children(proving.LockPath), 1)
			start := time.Now()
			theirs := v.Lock(other)
			v.AtOnce(start, "the grant")
			require.Positive(t, theirs.Token().Compare(l.Token()))
			require.NoError(t, theirs.Unlock())
		}
	})
}

func TestALingeringPlaceIsNotKeptWhileOthersWait(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(time.Hour))
		l := v.Lock(m)
		next := v.Line(v.Mutexes(1)...)[0]
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(next).Unlock())
	})
}

func TestLockingAgainWhileLingeringRaisesTheToken(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(time.Hour))
		var last zksync.Token
		node := ""
		for range 5 {
			l := v.Lock(m)
			require.Positive(t, l.Token().Compare(last))
			if node != "" {
				require.Equal(t, node, l.Node())
			}
			last, node = l.Token(), l.Node()
			require.NoError(t, l.Unlock())
			require.ErrorIs(t, l.Err(), zksync.ErrReleased, "idle is not held")
			v.Quiet()
		}
	})
}
