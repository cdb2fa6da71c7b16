package reentrant_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const path = "/locks/legacy"

func inBubble(t *testing.T, f func(t *testing.T, srv *zktest.Server, m *reentrant.Mutex, other *zksync.Mutex)) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		m := reentrant.NewMutex(zksync.NewMutex(srv.Session(t), path))
		f(t, srv, m, zksync.NewMutex(srv.Session(t), path))
	})
}

func TestAcceptance005OneUnlockOfTwoStillExcludes(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, m *reentrant.Mutex, other *zksync.Mutex) {
		m.Lock()
		before := srv.Requests()
		m.Lock()
		require.Equal(t, before, srv.Requests(), "a further level costs nothing")
		require.Equal(t, 2, m.HoldCount())
		require.True(t, m.TryLock())
		m.Unlock()
		m.Unlock()
		require.True(t, m.HeldByCurrent())
		require.False(t, other.TryLock(), "one level is left")
		m.Unlock()
		require.False(t, m.HeldByCurrent())
		require.Zero(t, m.HoldCount())
		require.True(t, other.TryLock())
		other.Unlock()
	})
}

func TestAcceptance005LeasesOfOneOwnerCountEachForItself(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, m *reentrant.Mutex, other *zksync.Mutex) {
		ctx := reentrant.WithOwner(t.Context())
		outer, err := m.LockContext(ctx)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() { // the owner is in the context, not the goroutine
			defer close(done)
			inner, err := m.TryLockContext(ctx)
			require.NoError(t, err)
			require.Equal(t, outer.Token(), inner.Token())
			require.Equal(t, 2, m.HoldCountContext(ctx))
			require.NoError(t, inner.Unlock())
			require.NoError(t, inner.Unlock(), "twice is once")
		}()
		<-done
		require.NoError(t, outer.Err())
		require.False(t, other.TryLock())
		require.NoError(t, outer.Unlock())
		require.True(t, other.TryLock())
		other.Unlock()
	})
}

func TestOwnersExcludeEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, m *reentrant.Mutex, _ *zksync.Mutex) {
		a, b := reentrant.WithOwner(t.Context()), reentrant.WithOwner(t.Context())
		l, err := m.LockContext(a)
		require.NoError(t, err)
		_, err = m.TryLockContext(b)
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.False(t, m.TryLock(), "this goroutine is a third")
		require.False(t, m.HeldByOwner(b))
		require.NoError(t, l.Unlock())
		l, err = m.TryLockContext(b)
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
	})
}

// Curator's reentrant mutex "succeeds" here while somebody else holds.
func TestAcceptance112ALevelAfterAnExpiryQueuesBehindWhoeverHoldsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		m := reentrant.NewMutex(zksync.NewMutex(s, path))
		other := zksync.NewMutex(srv.Session(t), path)
		m.Lock()
		m.Lock()
		old := m.Lease()
		srv.Expire(s.ID())
		<-old.Done()
		require.Zero(t, m.HoldCount(), "gone for all levels")
		held, err := other.LockContext(t.Context())
		require.NoError(t, err)
		require.False(t, m.TryLock())

		var again time.Time
		go func() {
			time.Sleep(time.Minute)
			again = time.Now()
			require.NoError(t, held.Unlock())
		}()
		m.Lock() // the same goroutine, a third level in its eyes
		require.Equal(t, again, time.Now(), "not before the other one unlocked")
		require.Equal(t, 1, m.HoldCount())
		require.Positive(t, m.Lease().Token().Compare(held.Token()))

		m.Unlock() // the newest first
		require.False(t, m.HeldByCurrent())
		free, err := other.TryLockContext(t.Context())
		require.NoError(t, err)
		m.Unlock() // the two of the lost hold touch nothing
		m.Unlock()
		require.NoError(t, free.Err())
		require.PanicsWithValue(t, "reentrant: unlock of unlocked mutex", m.Unlock)
		require.NoError(t, free.Unlock())
	})
}

func TestAcceptance112ALeaseAfterAnExpiryIsOneOfANewHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		m := reentrant.NewMutex(zksync.NewMutex(s, path))
		ctx := reentrant.WithOwner(t.Context())
		outer, err := m.LockContext(ctx)
		require.NoError(t, err)
		inner, err := m.LockContext(ctx)
		require.NoError(t, err)
		srv.Expire(s.ID())
		<-inner.Done()
		<-outer.Done()
		require.ErrorIs(t, inner.Err(), zksync.ErrLost)
		fresh, err := m.LockContext(ctx)
		require.NoError(t, err)
		require.Positive(t, fresh.Token().Compare(outer.Token()))
		require.ErrorIs(t, inner.Unlock(), zksync.ErrLost)
		require.ErrorIs(t, outer.Unlock(), zksync.ErrLost)
		require.NoError(t, fresh.Err(), "late unlocks touch a later hold")
		require.Equal(t, 1, m.HoldCountContext(ctx))
		require.NoError(t, fresh.Unlock())
		srv.CheckChildren(t, path)
	})
}

func TestAStrangersUnlockPanicsAndNamesBoth(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, m *reentrant.Mutex, _ *zksync.Mutex) {
		m.Lock()
		said := make(chan any)
		go func() {
			defer func() { said <- recover() }()
			m.Unlock()
		}()
		require.Regexp(t, `^reentrant: unlock by goroutine \d+ of a mutex that goroutine \d+ holds$`, <-said)
		m.Unlock()
		require.PanicsWithValue(t, "reentrant: unlock of unlocked mutex", m.Unlock)
	})
}

func TestDoIsNestedThroughItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, m *reentrant.Mutex, other *zksync.Mutex) {
		err := m.Do(t.Context(), func(ctx context.Context, outer *zksync.Lease) error {
			return m.Do(ctx, func(ctx context.Context, inner *zksync.Lease) error {
				require.Equal(t, outer.Token(), inner.Token())
				require.False(t, other.TryLock())
				return ctx.Err()
			})
		})
		require.NoError(t, err)
		srv.CheckChildren(t, path)
	})
}

func TestACancelledContextLocksNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, m *reentrant.Mutex, _ *zksync.Mutex) {
		ctx, cancel := context.WithCancel(reentrant.WithOwner(t.Context()))
		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		cancel()
		_, err = m.LockContext(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, l.Err(), "the context governed the waiting only")
		require.NoError(t, l.Unlock())
		srv.CheckChildren(t, path)
	})
}
