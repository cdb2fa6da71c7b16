package reentrant_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance005OneUnlockOfTwoStillExcludes(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		m, other := reentrant.NewMutex(zksync.NewMutex(proving.Calm(v), proving.LockPath)), zksync.NewMutex(proving.Calm(v), proving.LockPath)
		m.Lock()
		v.Costs(0, m.Lock, "a further level costs nothing")
		require.Equal(t, 2, m.HoldCount())
		require.True(t, m.TryLock())
		m.Unlock()
		m.Unlock()
		require.True(t, m.HeldByCurrent())
		require.False(t, other.TryLock(), "one level is left")
		m.Unlock()
		require.False(t, m.HeldByCurrent())
		require.Zero(t, m.HoldCount())
		v.Left(proving.LockPath, 0, "unlocked")
		require.True(t, other.TryLock())
		other.Unlock()
	})
}

func TestAcceptance005LeasesOfOneOwnerCountEachForItself(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		m, other := reentrant.NewMutex(ms[0]), ms[1]
		ctx := reentrant.WithOwner(t.Context())
		outer, err := m.LockContext(ctx)
		require.NoError(t, err)
		inner := make(chan *zksync.Lease, 1)
		go func() { // the owner is in the context, not the goroutine
			l, err := m.TryLockContext(ctx)
			if err != nil {
				l = nil
			}
			inner <- l
		}()
		l := <-inner
		require.NotNil(t, l)
		require.Equal(t, outer.Token(), l.Token())
		require.Equal(t, 2, m.HoldCountContext(ctx))
		require.NoError(t, l.Unlock())
		require.NoError(t, l.Unlock(), "twice is once")
		require.NoError(t, outer.Err())
		require.False(t, other.TryLock())
		require.NoError(t, outer.Unlock())
		v.Left(proving.LockPath, 0, "unlocked")
		require.True(t, other.TryLock())
		other.Unlock()
	})
}

// Curator's reentrant mutex "succeeds" here while somebody else holds.
func TestAcceptance112ALevelAfterAnExpiryQueuesBehindWhoeverHoldsNow(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		other := v.Mutexes(1)[0]
		m.Lock()
		m.Lock()
		told := m.Lease().Done()
		v.Expire(s)
		v.Awaits(told, "the holder to be told")
		require.Zero(t, m.HoldCount(), "gone for all levels")
		held := v.Lock(other)
		require.False(t, m.TryLock())

		var again time.Time
		unlocked := make(chan error, 1)
		time.AfterFunc(v.Span(time.Minute, 300*time.Millisecond), func() {
			again = time.Now()
			unlocked <- held.Unlock()
		})
		m.Lock() // the same goroutine, a third level in its eyes
		now := time.Now()
		require.NoError(t, <-unlocked)
		require.False(t, now.Before(again), "not before the other one unlocked")
		v.Took(again, 0, "the grant")
		require.Equal(t, 1, m.HoldCount())
		require.Positive(t, m.Lease().Token().Compare(held.Token()))

		m.Unlock() // the newest first
		require.False(t, m.HeldByCurrent())
		free := v.Lock(other)
		m.Unlock() // the two of the lost hold touch nothing
		m.Unlock()
		require.NoError(t, free.Err())
		require.PanicsWithValue(t, "reentrant: unlock of unlocked mutex", m.Unlock)
		require.NoError(t, free.Unlock())
	})
}

func TestAcceptance112ALeaseAfterAnExpiryIsOneOfANewHold(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		ctx := reentrant.WithOwner(t.Context())
		outer, err := m.LockContext(ctx)
		require.NoError(t, err)
		inner, err := m.LockContext(ctx)
		require.NoError(t, err)
		told := []<-chan struct{}{inner.Done(), outer.Done()}
		v.Expire(s)
		for _, done := range told {
			v.Awaits(done, "the holder to be told")
		}
		require.ErrorIs(t, inner.Err(), zksync.ErrLost)
		fresh, err := m.LockContext(ctx)
		require.NoError(t, err)
		require.Positive(t, fresh.Token().Compare(outer.Token()))
		require.ErrorIs(t, inner.Unlock(), zksync.ErrLost)
		require.ErrorIs(t, outer.Unlock(), zksync.ErrLost)
		require.NoError(t, fresh.Err(), "late unlocks touch a later hold")
		require.Equal(t, 1, m.HoldCountContext(ctx))
		require.NoError(t, fresh.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}
