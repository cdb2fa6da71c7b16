package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance016ExpiryOfTheHoldersSessionIsToldAndTheNextTokenIsLarger(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		l := v.lock(zksync.NewMutex(s, lockPath))
		told := l.Done()
		next := v.line(zksync.NewMutex(v.session(), lockPath))[0]
		old := s.ID()
		start := time.Now()
		v.expire(s)
		// The servers ended it at their own discretion, so nobody could be told before. The
		// holder learns in the same instant: its connection is closed, and it asks why.
		v.awaits(told, "the holder to be told")
		if v.virtual {
			v.took(start, 0, "telling the holder")
		}
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.False(t, l.Valid())
		after := v.granted(next)
		require.Positive(t, after.Token().Compare(l.Token()))
		require.Greater(t, after.Token().Zxid, l.Token().Zxid)
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
		require.True(t, after.Valid())
		require.True(t, v.exists(after.Path()), "the late unlock must not touch the next owner's node")
		require.NoError(t, after.Unlock())
		require.NotEqual(t, old, s.ID())
	})
}

func TestAcceptance021AHandleLocksAgainAfterTheSessionExpired(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		m := zksync.NewMutex(s, lockPath)
		var last zksync.Token
		for range 3 {
			l := v.lock(m)
			require.Positive(t, l.Token().Compare(last))
			last = l.Token()
			require.Equal(t, l.Path(), lockPath+"/"+v.children(lockPath)[0])
			told := l.Done()
			v.expire(s)
			v.awaits(told, "the holder to be told")
			_ = l.Unlock()
		}
		m.Lock()
		m.Unlock()
		v.left(lockPath, 0, "unlocked")
		require.True(t, m.TryLock())
		m.Unlock()
		v.queued(lockPath, 0)
	})
}

func TestAcceptance021ALostMirrorHoldKeepsTheProcessOutUntilItsUnlock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		m := zksync.NewMutex(s, lockPath)
		m.Lock()
		told := m.Lease().Done()
		v.expire(s)
		v.awaits(told, "the holder to be told")
		again := begin(context.Background(), m)
		v.quiet()
		require.True(t, again.pending())
		other := v.lock(zksync.NewMutex(v.session(), lockPath))
		m.Unlock()
		v.queued(lockPath, 2)
		require.NoError(t, other.Unlock())
		require.NoError(t, v.granted(again).Unlock())
	})
}

func TestAcceptance118AWaiterWhoseSessionExpiredQueuesAnewAtTheTail(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		holder := v.lock(v.mutexes(1)[0])
		s := v.session()
		victim, node := v.waiting(context.Background(), zksync.NewMutex(s, lockPath))
		behind, _ := v.waiting(context.Background(), v.mutexes(1)[0])
		old, before := s.ID(), v.children(lockPath)
		v.expire(s)
		v.vanished(node)
		v.settled(lockPath, 3)
		fresh := v.added(before)
		require.NotEqual(t, old, s.ID())
		require.NoError(t, holder.Unlock())
		next := v.granted(behind)
		v.quiet()
		require.True(t, victim.pending())
		require.NoError(t, next.Unlock())
		l := v.granted(victim)
		require.Equal(t, fresh, l.Path())
		require.NoError(t, l.Unlock())
	})
}

// vanished waits until a node is gone.
func (v *env) vanished(node string) {
	v.t.Helper()
	if v.virtual {
		v.quiet()
		require.False(v.t, v.exists(node))
		return
	}
	v.eventually(func() bool { return !v.exists(node) }, "%s is still there", node)
}

func TestAcceptance118AWaiterCutOffBeyondTheTimeoutQueuesAnewWhenItIsBack(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		holder := v.lock(v.mutexes(1)[0])
		s := v.session(zksync.WithTimeout(v.span(2*time.Second, 8*time.Second)))
		victim, node := v.waiting(context.Background(), zksync.NewMutex(s, lockPath))
		behind, _ := v.waiting(context.Background(), v.mutexes(1)[0])
		heal := v.cutOff(s)
		if v.virtual {
			time.Sleep(3 * time.Second)
		}
		v.queued(lockPath, 2)
		require.False(t, v.exists(node))
		heal()
		v.settled(lockPath, 3)
		require.NoError(t, holder.Unlock())
		next := v.granted(behind)
		v.quiet()
		require.True(t, victim.pending())
		require.NoError(t, next.Unlock())
		require.NoError(t, v.granted(victim).Unlock())
	})
}

func TestAcceptance118AWaiterWhoseSessionAndContextEndedFails(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		holder := v.lock(v.mutexes(1)[0])
		s := v.session(zksync.WithTimeout(v.span(2*time.Second, 8*time.Second)))
		ctx, cancel := context.WithCancel(context.Background())
		victim, _ := v.waiting(ctx, zksync.NewMutex(s, lockPath))
		heal := v.cutOff(s)
		if v.virtual {
			time.Sleep(3 * time.Second)
		}
		v.queued(lockPath, 1)
		start := time.Now()
		cancel()
		require.ErrorIs(t, v.failed(victim), context.Canceled)
		v.took(start, 0, "the cancelled call")
		heal()
		v.quiet()
		v.left(lockPath, 1, "only the holder stays")
		require.NoError(t, holder.Unlock())
	})
}

// The waiter's frames are held back while its blocker leaves, its session ends and another is granted.
// No time passes, so its lease clock cannot know better when the departure of the blocker arrives at last;
// what arrives with it, the end of the connection, has to. (With time passing, as for a process
// that was stopped, the clock does: see the test with processes.)
func TestAcceptance122AWaiterThatMissedTheEndOfItsSessionIsPutRightAtOnce(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		holder := v.lock(v.mutexes(1)[0])
		s := v.session()
		m := zksync.NewMutex(s, lockPath)
		victim, _ := v.waiting(context.Background(), m)
		third, _ := v.waiting(context.Background(), v.mutexes(1)[0])
		id := s.ID()
		heal := v.srv.Partition(id)
		require.NoError(t, holder.Unlock())
		v.quiet()
		require.True(t, third.pending(), "the waiter ahead is granted, though it does not know")
		require.True(t, v.srv.Expire(id))
		l := v.granted(third)
		require.True(t, victim.pending())
		start := time.Now()
		heal()
		v.quiet()
		if !victim.pending() {
			require.NoError(t, victim.err)
			require.False(t, victim.lease.Valid())
			require.ErrorIs(t, victim.lease.Unlock(), zksync.ErrLost)
			victim = begin(context.Background(), m)
		}
		v.took(start, 0, "finding out")
		v.queued(lockPath, 2)
		time.Sleep(5 * time.Minute)
		require.True(t, victim.pending(), "granted while another holds")
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		require.NoError(t, v.granted(victim).Unlock())
	})
}

func TestAcceptance122AWaiterCutOffBeyondItsTimeoutNeitherBelievesNorBlocks(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		holder := v.lock(v.mutexes(1)[0])
		s := v.session(zksync.WithTimeout(v.span(2*time.Second, 8*time.Second)))
		victim, node := v.waiting(context.Background(), zksync.NewMutex(s, lockPath))
		third, _ := v.waiting(context.Background(), v.mutexes(1)[0])
		heal := v.srv.Partition(s.ID())
		require.NoError(t, holder.Unlock())
		l := v.granted(third)
		require.False(t, v.exists(node))
		heal()
		time.Sleep(time.Minute)
		require.True(t, victim.pending(), "granted while another holds")
		require.NoError(t, l.Unlock())
		require.NoError(t, v.granted(victim).Unlock())
	})
}
