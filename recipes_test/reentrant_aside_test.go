package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// Levels that other goroutines of the owner give back while one of them waits are given back.

func TestAReadLevelGivenBackWhileItsWriteLevelWaitsIsCounted(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := reentrant.NewRWMutex(zkrwmutex.New(v.session(), lockPath))
		other := v.side()
		ctx := reentrant.WithOwner(context.Background())
		write, err := m.LockContext(ctx)
		require.NoError(t, err)
		read, err := m.RLockContext(ctx)
		require.NoError(t, err)
		kept, err := m.RLockContext(ctx)
		require.NoError(t, err)
		c := zkcond.New(m, condPath)
		a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, write) })
		v.queued(condPath, 1)
		require.NoError(t, read.Unlock())
		other.signals()
		again := v.granted(a)
		require.Equal(t, []int{1, 1}, []int{m.HoldCountContext(ctx), m.ReadHoldCountContext(ctx)})
		require.NoError(t, again.Unlock())
		v.queued(lockPath, 1)
		require.NoError(t, kept.Unlock())
		v.queued(lockPath, 0)
	})
}

func TestAWriteLevelGivenBackWhileItWaitsLeavesTheReadLevels(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := reentrant.NewRWMutex(zkrwmutex.New(v.session(), lockPath))
		other := v.side()
		ctx := reentrant.WithOwner(context.Background())
		write, err := m.LockContext(ctx)
		require.NoError(t, err)
		read, err := m.RLockContext(ctx)
		require.NoError(t, err)
		c := zkcond.New(m, condPath)
		a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, write) })
		v.queued(condPath, 1)
		require.NoError(t, write.Unlock())
		other.signals()
		again := v.granted(a)
		require.Equal(t, []int{0, 1}, []int{m.HoldCountContext(ctx), m.ReadHoldCountContext(ctx)})
		require.NoError(t, again.Unlock(), "its level has been given back, and is not counted twice")
		v.queued(lockPath, 1)
		require.NoError(t, read.Unlock())
		v.queued(lockPath, 0)
	})
}
