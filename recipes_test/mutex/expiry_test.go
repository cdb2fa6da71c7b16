package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance016ExpiryOfTheHoldersSessionIsToldAndTheNextTokenIsLarger(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		told := l.Done()
		next := v.Line(zksync.NewMutex(v.Session(), proving.LockPath))[0]
		old := s.ID()
		start := time.Now()
		v.Expire(s)
		// The servers ended it at their own discretion, so nobody could be told before. The
		// holder learns in the same instant: its connection is closed, and it asks why.
		v.Awaits(told, "the holder to be told")
		if v.Virtual {
			v.Took(start, 0, "telling the holder")
		}
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.False(t, l.Valid())
		after := v.Granted(next)
		require.Positive(t, after.Token().Compare(l.Token()))
		require.Greater(t, after.Token().Zxid, l.Token().Zxid)
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
		require.True(t, after.Valid())
		require.True(t, v.Exists(after.Node()), "the late unlock must not touch the next owner's node")
		require.NoError(t, after.Unlock())
		require.NotEqual(t, old, s.ID())
	})
}

func TestAcceptance021AHandleLocksAgainAfterTheSessionExpired(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := zksync.NewMutex(s, proving.LockPath)
		var last zksync.Token
		for range 3 {
			l := v.Lock(m)
			require.Positive(t, l.Token().Compare(last))
			last = l.Token()
			require.Equal(t, l.Node(), proving.LockPath+"/"+v.Children(proving.LockPath)[0])
			told := l.Done()
			v.Expire(s)
			v.Awaits(told, "the holder to be told")
			_ = l.Unlock()
		}
		m.Lock()
		m.Unlock()
		v.Left(proving.LockPath, 0, "unlocked")
		require.True(t, m.TryLock())
		m.Unlock()
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance021ALostMirrorHoldKeepsTheProcessOutUntilItsUnlock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := zksync.NewMutex(s, proving.LockPath)
		m.Lock()
		told := m.Lease().Done()
		v.Expire(s)
		v.Awaits(told, "the holder to be told")
		again := proving.Begin(context.Background(), m)
		v.Quiet()
		require.True(t, again.Pending())
		other := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		m.Unlock()
		v.Queued(proving.LockPath, 2)
		require.NoError(t, other.Unlock())
		require.NoError(t, v.Granted(again).Unlock())
	})
}

func TestAcceptance118AWaiterWhoseSessionExpiredQueuesAnewAtTheTail(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(v.Mutexes(1)[0])
		s := v.Session()
		victim, node := waiting(v, context.Background(), zksync.NewMutex(s, proving.LockPath))
		behind, _ := waiting(v, context.Background(), v.Mutexes(1)[0])
		old, before := s.ID(), v.Children(proving.LockPath)
		v.Expire(s)
		vanished(v, node)
		v.Settled(proving.LockPath, 3)
		fresh := added(v, before)
		require.NotEqual(t, old, s.ID())
		require.NoError(t, holder.Unlock())
		next := v.Granted(behind)
		v.Quiet()
		require.True(t, victim.Pending())
		require.NoError(t, next.Unlock())
		l := v.Granted(victim)
		require.Equal(t, fresh, l.Node())
		require.NoError(t, l.Unlock())
	})
}

// vanished waits until a node is gone.
func vanished(v *proving.Env, node string) {
	v.T.Helper()
	if v.Virtual {
		v.Quiet()
		require.False(v.T, v.Exists(node))
		return
	}
	v.Eventually(func() bool { return !v.Exists(node) }, "%s is still there", node)
}

func TestAcceptance118AWaiterCutOffBeyondTheTimeoutQueuesAnewWhenItIsBack(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(v.Mutexes(1)[0])
		s := v.Session(zksync.WithTimeout(v.Span(2*time.Second, 8*time.Second)))
		victim, node := waiting(v, context.Background(), zksync.NewMutex(s, proving.LockPath))
		behind, _ := waiting(v, context.Background(), v.Mutexes(1)[0])
		heal := v.CutOff(s)
		if v.Virtual {
			time.Sleep(3 * time.Second)
		}
		v.Queued(proving.LockPath, 2)
		require.False(t, v.Exists(node))
		heal()
		v.Settled(proving.LockPath, 3)
		require.NoError(t, holder.Unlock())
		next := v.Granted(behind)
		v.Quiet()
		require.True(t, victim.Pending())
		require.NoError(t, next.Unlock())
		require.NoError(t, v.Granted(victim).Unlock())
	})
}

func TestAcceptance118AWaiterWhoseSessionAndContextEndedFails(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(v.Mutexes(1)[0])
		s := v.Session(zksync.WithTimeout(v.Span(2*time.Second, 8*time.Second)))
		ctx, cancel := context.WithCancel(context.Background())
		victim, _ := waiting(v, ctx, zksync.NewMutex(s, proving.LockPath))
		heal := v.CutOff(s)
		if v.Virtual {
			time.Sleep(3 * time.Second)
		}
		v.Queued(proving.LockPath, 1)
		start := time.Now()
		cancel()
		require.ErrorIs(t, v.Failed(victim), context.Canceled)
		v.Took(start, 0, "the cancelled call")
		heal()
		v.Quiet()
		v.Left(proving.LockPath, 1, "only the holder stays")
		require.NoError(t, holder.Unlock())
	})
}

// The waiter's frames are held back while its blocker leaves, its session ends and another is granted.
// No time passes, so its lease clock cannot know better when the departure of the blocker arrives at last;
// what arrives with it, the end of the connection, has to. (With time passing, as for a process
// that was stopped, the clock does: see the test with processes.)
func TestAcceptance122AWaiterThatMissedTheEndOfItsSessionIsPutRightAtOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(v.Mutexes(1)[0])
		s := v.Session()
		m := zksync.NewMutex(s, proving.LockPath)
		victim, _ := waiting(v, context.Background(), m)
		third, _ := waiting(v, context.Background(), v.Mutexes(1)[0])
		id := s.ID()
		heal := v.Server.Partition(id)
		require.NoError(t, holder.Unlock())
		v.Quiet()
		require.True(t, third.Pending(), "the waiter ahead is granted, though it does not know")
		require.True(t, v.Server.Expire(id))
		l := v.Granted(third)
		require.True(t, victim.Pending())
		start := time.Now()
		heal()
		v.Quiet()
		if !victim.Pending() {
			require.NoError(t, victim.Err)
			require.False(t, victim.Lease.Valid())
			require.ErrorIs(t, victim.Lease.Unlock(), zksync.ErrLost)
			victim = proving.Begin(context.Background(), m)
		}
		v.Took(start, 0, "finding out")
		v.Queued(proving.LockPath, 2)
		time.Sleep(5 * time.Minute)
		require.True(t, victim.Pending(), "granted while another holds")
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(victim).Unlock())
	})
}

func TestAcceptance122AWaiterCutOffBeyondItsTimeoutNeitherBelievesNorBlocks(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(v.Mutexes(1)[0])
		s := v.Session(zksync.WithTimeout(v.Span(2*time.Second, 8*time.Second)))
		victim, node := waiting(v, context.Background(), zksync.NewMutex(s, proving.LockPath))
		third, _ := waiting(v, context.Background(), v.Mutexes(1)[0])
		heal := v.Server.Partition(s.ID())
		require.NoError(t, holder.Unlock())
		l := v.Granted(third)
		require.False(t, v.Exists(node))
		heal()
		time.Sleep(time.Minute)
		require.True(t, victim.Pending(), "granted while another holds")
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(victim).Unlock())
	})
}
