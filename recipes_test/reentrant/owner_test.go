package reentrant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// What a lost lease leaves behind must not let an Unlock too many pass for one that was owed.

func TestLostWriteLeasesLeaveNoUnlockToTheMirrorForm(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := rrw(v, s)
		ctx := context.Background()
		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		v.Server.Expire(s.ID())
		v.Quiet()
		m.Lock()
		_ = l.Unlock() // of the lost one, as its owner must
		m.Unlock()
		require.Panics(t, m.Unlock, "nothing is held and nothing is owed")
	})
}

func TestLostReadLeasesLeaveNoRUnlockToTheMirrorForm(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := rrw(v, s)
		ctx := context.Background()
		l, err := m.RLockContext(ctx)
		require.NoError(t, err)
		v.Server.Expire(s.ID())
		v.Quiet()
		m.RLock()
		_ = l.Unlock()
		m.RUnlock()
		require.Panics(t, m.RUnlock)
	})
}

func TestLostLeasesLeaveNoUnlockToTheMirrorFormOfTheMutex(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		l, err := m.LockContext(context.Background())
		require.NoError(t, err)
		v.Server.Expire(s.ID())
		v.Quiet()
		m.Lock()
		_ = l.Unlock()
		m.Unlock()
		require.Panics(t, m.Unlock)
	})
}

// A read lease inside a write hold that was lost has nothing to do with what its owner reads later.
func TestALostReadLeaseInsideAWriteTakesNothingFromALaterRead(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := rrw(v, s)
		ctx := context.Background()
		write, err := m.LockContext(ctx)
		require.NoError(t, err)
		read, err := m.RLockContext(ctx)
		require.NoError(t, err)
		v.Server.Expire(s.ID())
		v.Quiet()
		later, err := m.RLockContext(ctx)
		require.NoError(t, err)
		require.ErrorIs(t, read.Unlock(), zksync.ErrLost)
		require.ErrorIs(t, write.Unlock(), zksync.ErrLost)
		require.Equal(t, 1, m.ReadHoldCount())
		require.True(t, later.Valid())
		require.NoError(t, later.Unlock())
		require.Zero(t, m.ReadHoldCount())
		v.Queued(proving.LockPath, 0)
	})
}

// beginTogether has two goroutines of one owner wait for held. They must not wait for each other.
func beginTogether(v *proving.Env, lock func(context.Context) (*zksync.Lease, error), held *zksync.Lease) {
	v.T.Helper()
	ctx, cancel := context.WithTimeout(reentrant.WithOwner(context.Background()), time.Minute)
	defer cancel()
	a, b := proving.Call(ctx, lock), proving.Call(ctx, lock)
	v.Quiet()
	require.NoError(v.T, held.Unlock())
	<-a.Done
	<-b.Done
	require.NoError(v.T, a.Err)
	require.NoError(v.T, b.Err)
	require.Zero(v.T, a.Lease.Token().Compare(b.Lease.Token()), "one hold")
	require.NoError(v.T, a.Lease.Unlock())
	require.NoError(v.T, b.Lease.Unlock())
	v.Queued(proving.LockPath, 0)
}

func TestTwoGoroutinesOfOneOwnerBeginAWriteHoldTogether(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, blocker := rrw(v, v.Session()), zkrwmutex.New(v.Session(), proving.LockPath)
		held := v.Get(blocker.LockContext)
		beginTogether(v, m.LockContext, held)
	})
}

func TestTwoGoroutinesOfOneOwnerBeginAHoldTogether(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, blocker := reentrant.NewMutex(zksync.NewMutex(v.Session(), proving.LockPath)), v.Mutexes(1)[0]
		held := v.Get(blocker.LockContext)
		beginTogether(v, m.LockContext, held)
	})
}

// The second gives up in time, and leaves the first alone.
func TestAGoroutineThatWaitsForAnotherOneOfItsOwnerHeedsItsOwnDeadline(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, blocker := rrw(v, v.Session()), zkrwmutex.New(v.Session(), proving.LockPath)
		held := v.Get(blocker.LockContext)
		owner := reentrant.WithOwner(context.Background())
		a := proving.Call(owner, m.LockContext)
		v.Quiet()
		ctx, cancel := context.WithTimeout(owner, time.Second)
		defer cancel()
		start := time.Now()
		_, err := m.RLockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		_, err = m.TryLockContext(owner)
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, held.Unlock())
		require.NoError(t, v.Granted(a).Unlock())
		v.Queued(proving.LockPath, 0)
	})
}
