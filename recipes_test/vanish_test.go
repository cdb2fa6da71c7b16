package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// added returns the one child that is not among before.
func (v *env) added(before []string) string {
	v.t.Helper()
	var fresh []string
	for _, name := range v.children(lockPath) {
		found := false
		for _, old := range before {
			found = found || old == name
		}
		if !found {
			fresh = append(fresh, name)
		}
	}
	require.Len(v.t, fresh, 1)
	return lockPath + "/" + fresh[0]
}

// waiting has m wait behind what is there, and returns its node.
func (v *env) waiting(ctx context.Context, m *zksync.Mutex) (*attempt, string) {
	v.t.Helper()
	before := v.children(lockPath)
	a := begin(ctx, m)
	v.settled(lockPath, len(before)+1)
	return a, v.added(before)
}

func TestAcceptance014AWaiterWhoseNodeIsDeletedQueuesAnewAtTheTail(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(3)
		holder := v.lock(ms[0])
		victim, node := v.waiting(context.Background(), ms[1])
		behind, _ := v.waiting(context.Background(), ms[2])
		before := v.children(lockPath)
		v.remove(node)
		v.settled(lockPath, 3)
		fresh := v.added(before)
		require.True(t, victim.pending())
		require.True(t, behind.pending())

		require.NoError(t, holder.Unlock())
		next := v.granted(behind)
		v.quiet()
		require.True(t, victim.pending(), "it kept a place that it had lost")
		require.NoError(t, next.Unlock())
		l := v.granted(victim)
		require.Equal(t, fresh, l.Path())
		require.Positive(t, l.Token().Compare(next.Token()))
		require.NoError(t, l.Unlock())
	})
}

// The own node goes first, the holder's next, and the waiter hears of both at the same time: whatever
// it looks at first, it must not take the departure of the holder for its own grant.
func TestAcceptance014DeletingTheWaitersNodeAndThenTheHoldersGrantsTheThird(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		for _, slow := range []time.Duration{0, time.Millisecond, 40 * time.Millisecond} {
			victimSession := v.session()
			ms := v.mutexes(2)
			holder := v.lock(ms[0])
			victim, node := v.waiting(context.Background(), zksync.NewMutex(victimSession, lockPath))
			third, _ := v.waiting(context.Background(), ms[1])
			v.srv.Delay(victimSession.ID(), 0, slow)
			v.remove(node)
			v.remove(holder.Path())
			l := v.granted(third)
			time.Sleep(time.Second)
			require.True(t, victim.pending(), "granted with its node deleted; replies delayed by %v", slow)
			require.True(t, l.Valid())
			require.NoError(t, l.Unlock())
			again := v.granted(victim)
			require.NotEqual(t, node, again.Path())
			_ = holder.Unlock() // its node was deleted: an error or not, it must not disturb
			require.True(t, v.exists(again.Path()))
			require.NoError(t, again.Unlock())
			v.queued(lockPath, 0)
		}
	})
}

// Nobody but the own watch tells of this: the holder stays.
func TestAcceptance014AFarWaiterWhoseNodeIsDeletedQueuesAnew(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(6)
		holder := v.lock(ms[0])
		waiters := v.line(ms[1:5]...)
		victim, node := v.waiting(context.Background(), ms[5])
		before := v.children(lockPath)
		v.remove(node)
		v.settled(lockPath, 6)
		require.NotEqual(t, node, v.added(before))
		for _, a := range append(waiters, victim) {
			require.NoError(t, holder.Unlock())
			holder = v.granted(a)
		}
		require.NoError(t, holder.Unlock())
	})
}

func TestAcceptance014AWaiterThatGivesUpAfterItsNodeWasDeletedLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(2)
		holder := v.lock(ms[0])
		ctx, cancel := context.WithCancel(context.Background())
		victim, node := v.waiting(ctx, ms[1])
		v.remove(node)
		v.settled(lockPath, 2)
		cancel()
		require.ErrorIs(t, v.failed(victim), context.Canceled)
		v.queued(lockPath, 1)
		require.NoError(t, holder.Unlock())
		v.queued(lockPath, 0)
	})
}

func TestAcceptance015DeletingTheHoldersNodeTellsTheHolder(t *testing.T) {
	for name, listen := range map[string]func(*zksync.Lease) <-chan struct{}{
		"Done":    (*zksync.Lease).Done,
		"Context": func(l *zksync.Lease) <-chan struct{} { return l.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				ms := v.mutexes(2)
				l := v.lock(ms[0])
				told := listen(l)
				next := v.line(ms[1])[0]
				start := time.Now()
				v.remove(l.Path())
				v.awaits(told, "the holder to be told")
				v.took(start, 0, "telling the holder")
				require.ErrorIs(t, l.Err(), zksync.ErrLost)
				require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrLost)
				require.False(t, l.Valid())
				require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
				after := v.granted(next)
				require.Positive(t, after.Token().Compare(l.Token()))
				require.NoError(t, after.Unlock())
				require.NoError(t, v.lock(ms[0]).Unlock(), "the handle must work again")
			})
		})
	}
}

func TestAcceptance015TheMirrorHolderIsToldThroughTheHandlesLease(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := v.mutexes(1)[0]
		m.Lock()
		l := m.Lease()
		told := l.Done()
		v.quiet()
		v.remove(l.Path())
		v.awaits(told, "the holder to be told")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		again := begin(context.Background(), m)
		v.quiet()
		require.True(t, again.pending(), "the critical section of this process still runs")
		require.NotPanics(t, m.Unlock)
		require.NoError(t, v.granted(again).Unlock())
	})
}
