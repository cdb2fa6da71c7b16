package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// added returns the one child that is not among before.
func added(v *proving.Env, before []string) string {
	v.T.Helper()
	var fresh []string
	for _, name := range v.Children(proving.LockPath) {
		found := false
		for _, old := range before {
			found = found || old == name
		}
		if !found {
			fresh = append(fresh, name)
		}
	}
	require.Len(v.T, fresh, 1)
	return proving.LockPath + "/" + fresh[0]
}

// waiting has m wait behind what is there, and returns its node.
func waiting(v *proving.Env, ctx context.Context, m *zksync.Mutex) (*proving.Attempt, string) {
	v.T.Helper()
	before := v.Children(proving.LockPath)
	a := proving.Begin(ctx, m)
	v.Settled(proving.LockPath, len(before)+1)
	return a, added(v, before)
}

func TestAcceptance014AWaiterWhoseNodeIsDeletedQueuesAnewAtTheTail(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(3)
		holder := v.Lock(ms[0])
		victim, node := waiting(v, context.Background(), ms[1])
		behind, _ := waiting(v, context.Background(), ms[2])
		before := v.Children(proving.LockPath)
		v.Remove(node)
		v.Settled(proving.LockPath, 3)
		fresh := added(v, before)
		require.True(t, victim.Pending())
		require.True(t, behind.Pending())

		require.NoError(t, holder.Unlock())
		next := v.Granted(behind)
		v.Quiet()
		require.True(t, victim.Pending(), "it kept a place that it had lost")
		require.NoError(t, next.Unlock())
		l := v.Granted(victim)
		require.Equal(t, fresh, l.Node())
		require.Positive(t, l.Token().Compare(next.Token()))
		require.NoError(t, l.Unlock())
	})
}

// The own node goes first, the holder's next, and the waiter hears of both at the same time: whatever
// it looks at first, it must not take the departure of the holder for its own grant.
func TestAcceptance014DeletingTheWaitersNodeAndThenTheHoldersGrantsTheThird(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for _, slow := range []time.Duration{0, time.Millisecond, 40 * time.Millisecond} {
			victimSession := v.Session()
			ms := v.Mutexes(2)
			holder := v.Lock(ms[0])
			victim, node := waiting(v, context.Background(), zksync.NewMutex(victimSession, proving.LockPath))
			third, _ := waiting(v, context.Background(), ms[1])
			v.Server.Delay(victimSession.ID(), 0, slow)
			v.Remove(node)
			v.Remove(holder.Node())
			l := v.Granted(third)
			time.Sleep(time.Second)
			require.True(t, victim.Pending(), "granted with its node deleted; replies delayed by %v", slow)
			require.True(t, l.Valid())
			require.NoError(t, l.Unlock())
			again := v.Granted(victim)
			require.NotEqual(t, node, again.Node())
			_ = holder.Unlock() // its node was deleted: an error or not, it must not disturb
			require.True(t, v.Exists(again.Node()))
			require.NoError(t, again.Unlock())
			v.Queued(proving.LockPath, 0)
		}
	})
}

// Nobody but the own watch tells of this: the holder stays.
func TestAcceptance014AFarWaiterWhoseNodeIsDeletedQueuesAnew(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(6)
		holder := v.Lock(ms[0])
		waiters := v.Line(ms[1:5]...)
		victim, node := waiting(v, context.Background(), ms[5])
		before := v.Children(proving.LockPath)
		v.Remove(node)
		v.Settled(proving.LockPath, 6)
		require.NotEqual(t, node, added(v, before))
		for _, a := range append(waiters, victim) {
			require.NoError(t, holder.Unlock())
			holder = v.Granted(a)
		}
		require.NoError(t, holder.Unlock())
	})
}

func TestAcceptance014AWaiterThatGivesUpAfterItsNodeWasDeletedLeavesNothing(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		holder := v.Lock(ms[0])
		ctx, cancel := context.WithCancel(context.Background())
		victim, node := waiting(v, ctx, ms[1])
		v.Remove(node)
		v.Settled(proving.LockPath, 2)
		cancel()
		require.ErrorIs(t, v.Failed(victim), context.Canceled)
		v.Queued(proving.LockPath, 1)
		require.NoError(t, holder.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance015DeletingTheHoldersNodeTellsTheHolder(t *testing.T) {
	for name, listen := range map[string]func(*zksync.Lease) <-chan struct{}{
		"Done":    (*zksync.Lease).Done,
		"Context": func(l *zksync.Lease) <-chan struct{} { return l.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				ms := v.Mutexes(2)
				l := v.Lock(ms[0])
				told := listen(l)
				next := v.Line(ms[1])[0]
				start := time.Now()
				v.Remove(l.Node())
				v.Awaits(told, "the holder to be told")
				v.Took(start, 0, "telling the holder")
				require.ErrorIs(t, l.Err(), zksync.ErrLost)
				require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrLost)
				require.False(t, l.Valid())
				require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
				after := v.Granted(next)
				require.Positive(t, after.Token().Compare(l.Token()))
				require.NoError(t, after.Unlock())
				require.NoError(t, v.Lock(ms[0]).Unlock(), "the handle must work again")
			})
		})
	}
}

func TestAcceptance015TheMirrorHolderIsToldThroughTheHandlesLease(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		m.Lock()
		l := m.Lease()
		told := l.Done()
		v.Quiet()
		v.Remove(l.Node())
		v.Awaits(told, "the holder to be told")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		again := proving.Begin(context.Background(), m)
		v.Quiet()
		require.True(t, again.Pending(), "the critical section of this process still runs")
		require.NotPanics(t, m.Unlock)
		require.NoError(t, v.Granted(again).Unlock())
	})
}
