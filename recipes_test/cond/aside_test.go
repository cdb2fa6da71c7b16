package cond_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// Levels that other goroutines of the owner give back while one of them waits are given back.

func TestAReadLevelGivenBackWhileItsWriteLevelWaitsIsCounted(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := reentrant.NewRWMutex(zkrwmutex.New(v.Session(), proving.LockPath))
		other := newSide(v)
		ctx := reentrant.WithOwner(context.Background())
		write, err := m.LockContext(ctx)
		require.NoError(t, err)
		read, err := m.RLockContext(ctx)
		require.NoError(t, err)
		kept, err := m.RLockContext(ctx)
		require.NoError(t, err)
		c := zkcond.New(m, proving.CondPath)
		a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, write) })
		v.Queued(proving.CondPath, 1)
		require.NoError(t, read.Unlock())
		other.signals()
		again := v.Granted(a)
		require.Equal(t, []int{1, 1}, []int{m.HoldCountContext(ctx), m.ReadHoldCountContext(ctx)})
		require.NoError(t, again.Unlock())
		v.Queued(proving.LockPath, 1)
		require.NoError(t, kept.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAWriteLevelGivenBackWhileItWaitsLeavesTheReadLevels(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := reentrant.NewRWMutex(zkrwmutex.New(v.Session(), proving.LockPath))
		other := newSide(v)
		ctx := reentrant.WithOwner(context.Background())
		write, err := m.LockContext(ctx)
		require.NoError(t, err)
		read, err := m.RLockContext(ctx)
		require.NoError(t, err)
		c := zkcond.New(m, proving.CondPath)
		a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, write) })
		v.Queued(proving.CondPath, 1)
		require.NoError(t, write.Unlock())
		other.signals()
		again := v.Granted(a)
		require.Equal(t, []int{0, 1}, []int{m.HoldCountContext(ctx), m.ReadHoldCountContext(ctx)})
		require.NoError(t, again.Unlock(), "its level has been given back, and is not counted twice")
		v.Queued(proving.LockPath, 1)
		require.NoError(t, read.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}
