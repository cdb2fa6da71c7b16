package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// What a lost lease leaves behind must not let an Unlock too many pass for one that was owed.

func TestLostWriteLeasesLeaveNoUnlockToTheMirrorForm(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m := v.rrw(s)
		ctx := context.Background()
		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		v.srv.Expire(s.ID())
		v.quiet()
		m.Lock()
		_ = l.Unlock() // of the lost one, as its owner must
		m.Unlock()
		require.Panics(t, m.Unlock, "nothing is held and nothing is owed")
	})
}

func TestLostReadLeasesLeaveNoRUnlockToTheMirrorForm(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m := v.rrw(s)
		ctx := context.Background()
		l, err := m.RLockContext(ctx)
		require.NoError(t, err)
		v.srv.Expire(s.ID())
		v.quiet()
		m.RLock()
		_ = l.Unlock()
		m.RUnlock()
		require.Panics(t, m.RUnlock)
	})
}

func TestLostLeasesLeaveNoUnlockToTheMirrorFormOfTheMutex(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m := reentrant.NewMutex(zksync.NewMutex(s, lockPath))
		l, err := m.LockContext(context.Background())
		require.NoError(t, err)
		v.srv.Expire(s.ID())
		v.quiet()
		m.Lock()
		_ = l.Unlock()
		m.Unlock()
		require.Panics(t, m.Unlock)
	})
}

// A read lease inside a write hold that was lost has nothing to do with what its owner reads later.
func TestALostReadLeaseInsideAWriteTakesNothingFromALaterRead(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m := v.rrw(s)
		ctx := context.Background()
		write, err := m.LockContext(ctx)
		require.NoError(t, err)
		read, err := m.RLockContext(ctx)
		require.NoError(t, err)
		v.srv.Expire(s.ID())
		v.quiet()
		later, err := m.RLockContext(ctx)
		require.NoError(t, err)
		require.ErrorIs(t, read.Unlock(), zksync.ErrLost)
		require.ErrorIs(t, write.Unlock(), zksync.ErrLost)
		require.Equal(t, 1, m.ReadHoldCount())
		require.True(t, later.Valid())
		require.NoError(t, later.Unlock())
		require.Zero(t, m.ReadHoldCount())
		v.queued(lockPath, 0)
	})
}

// Goroutines of one owner begin a hold together, and must not wait for each other.

func TestTwoGoroutinesOfOneOwnerBeginAWriteHoldTogether(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		m, blocker := v.rrw(v.session()), zkrwmutex.New(v.session(), lockPath)
		held := v.get(blocker.LockContext)
		ctx, cancel := context.WithTimeout(reentrant.WithOwner(context.Background()), time.Minute)
		defer cancel()
		a, b := call(ctx, m.LockContext), call(ctx, m.LockContext)
		v.quiet()
		require.NoError(t, held.Unlock())
		<-a.done
		<-b.done
		require.NoError(t, a.err)
		require.NoError(t, b.err)
		require.Zero(t, a.lease.Token().Compare(b.lease.Token()), "one hold")
		require.NoError(t, a.lease.Unlock())
		require.NoError(t, b.lease.Unlock())
		v.queued(lockPath, 0)
	})
}

func TestTwoGoroutinesOfOneOwnerBeginAHoldTogether(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		m, blocker := reentrant.NewMutex(zksync.NewMutex(v.session(), lockPath)), v.mutexes(1)[0]
		held := v.get(blocker.LockContext)
		ctx, cancel := context.WithTimeout(reentrant.WithOwner(context.Background()), time.Minute)
		defer cancel()
		a, b := call(ctx, m.LockContext), call(ctx, m.LockContext)
		v.quiet()
		require.NoError(t, held.Unlock())
		<-a.done
		<-b.done
		require.NoError(t, a.err)
		require.NoError(t, b.err)
		require.Zero(t, a.lease.Token().Compare(b.lease.Token()), "one hold")
		require.NoError(t, a.lease.Unlock())
		require.NoError(t, b.lease.Unlock())
		v.queued(lockPath, 0)
	})
}

// The second gives up in time, and leaves the first alone.
func TestAGoroutineThatWaitsForAnotherOneOfItsOwnerHeedsItsOwnDeadline(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		m, blocker := v.rrw(v.session()), zkrwmutex.New(v.session(), lockPath)
		held := v.get(blocker.LockContext)
		owner := reentrant.WithOwner(context.Background())
		a := call(owner, m.LockContext)
		v.quiet()
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
		require.NoError(t, v.granted(a).Unlock())
		v.queued(lockPath, 0)
	})
}
