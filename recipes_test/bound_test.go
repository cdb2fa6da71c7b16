package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// afterBound checks an instant that follows from the bound of a hold. In real time start is before the
// requests of the lock itself, and others follow; what matters is that anything ends an endless hold.
func (v *env) afterBound(start time.Time, bound time.Duration, what string) {
	v.t.Helper()
	if v.virtual {
		v.took(start, bound, what)
		return
	}
	require.GreaterOrEqual(v.t, time.Since(start), bound, what)
}

func TestAMaximumHoldEndsTheLeaseAndGrantsTheNext(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		bound := v.ample(700 * time.Millisecond) // to unlock in, at the end
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithMaxHold(bound))
		other := v.mutexes(1)[0]
		start := time.Now()
		l := v.lock(m)
		told := l.Done()
		next := begin(context.Background(), other) // which, on a busy machine, may queue too late to wait
		v.awaits(told, "the holder to be told")
		v.afterBound(start, bound, "the hold")
		require.ErrorIs(t, l.Err(), zksync.ErrMaxHold)
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrMaxHold)
		require.False(t, l.Valid())
		_, err := l.Guard(write("late"))
		require.ErrorIs(t, err, zksync.ErrMaxHold)
		after := v.granted(next)
		v.afterBound(start, bound, "the next grant")
		require.Positive(t, after.Token().Compare(l.Token()))
		require.ErrorIs(t, l.Unlock(), zksync.ErrMaxHold)
		require.True(t, after.Valid(), "the late unlock must not touch it")
		require.NoError(t, after.Unlock())
		require.NoError(t, v.lock(m).Unlock(), "released in time")
	})
}

// The process is kept out until its own Unlock, since its critical section runs on; others are not.
func TestAMaximumHoldOfTheMirrorFormLetsOthersInButNotThisProcess(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		const bound = 500 * time.Millisecond
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithMaxHold(bound))
		distant := v.mutexes(1)[0]
		start := time.Now()
		m.Lock()
		l := m.Lease()
		local := begin(context.Background(), m)
		v.quiet()
		other := v.granted(begin(context.Background(), distant))
		v.afterBound(start, bound, "the next grant")
		require.ErrorIs(t, l.Err(), zksync.ErrMaxHold)
		require.True(t, local.pending())
		require.NoError(t, other.Unlock())
		v.queued(lockPath, 0)
		v.quiet()
		require.True(t, local.pending(), "two critical sections in one process")
		m.Unlock()
		require.NoError(t, v.granted(local).Unlock())
	})
}

func TestAMaximumHoldBoundsEveryHandoverAnew(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		const bound = 500 * time.Millisecond
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithMaxHold(bound))
		first := v.lock(m)
		next := begin(context.Background(), m)
		v.quiet()
		time.Sleep(5 * time.Millisecond)
		require.NoError(t, first.Unlock())
		l := v.granted(next)
		require.Equal(t, first.Path(), l.Path(), "handed over")
		start := next.at
		<-l.Done()
		v.took(start, bound, "the second hold")
		require.ErrorIs(t, l.Err(), zksync.ErrMaxHold)
		require.ErrorIs(t, first.Err(), zksync.ErrReleased)
		v.queued(lockPath, 0)
		require.ErrorIs(t, l.Unlock(), zksync.ErrMaxHold)
	})
}

func TestALingeringPlaceIsGivenUpWhenItsTimeIsOver(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		const linger = 2 * time.Second
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithLinger(linger))
		require.NoError(t, v.lock(m).Unlock())
		start := time.Now()
		v.quiet()
		zktest.CheckChildren(t, v.srv, lockPath, v.children(lockPath)...)
		require.Len(t, v.children(lockPath), 1)
		v.queued(lockPath, 0)
		v.took(start, linger, "lingering")
	})
}

// The remote one queues behind an idle place, whose owner is told at once and goes.
func TestALingeringPlaceIsGivenUpAsSoonAsSomebodyQueues(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithLinger(time.Hour))
		other := v.mutexes(1)[0]
		for range 3 {
			l := v.lock(m)
			require.NoError(t, l.Unlock())
			v.quiet()
			require.Len(t, v.children(lockPath), 1)
			start := time.Now()
			theirs := v.lock(other)
			v.atOnce(start, "the grant")
			require.Positive(t, theirs.Token().Compare(l.Token()))
			require.NoError(t, theirs.Unlock())
		}
	})
}

func TestALingeringPlaceIsNotKeptWhileOthersWait(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithLinger(time.Hour))
		l := v.lock(m)
		next := v.line(v.mutexes(1)...)[0]
		require.NoError(t, l.Unlock())
		require.NoError(t, v.granted(next).Unlock())
	})
}

func TestLockingAgainWhileLingeringRaisesTheToken(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithLinger(time.Hour))
		var last zksync.Token
		node := ""
		for range 5 {
			l := v.lock(m)
			require.Positive(t, l.Token().Compare(last))
			if node != "" {
				require.Equal(t, node, l.Path())
			}
			last, node = l.Token(), l.Path()
			require.NoError(t, l.Unlock())
			require.ErrorIs(t, l.Err(), zksync.ErrReleased, "idle is not held")
			v.quiet()
		}
	})
}
