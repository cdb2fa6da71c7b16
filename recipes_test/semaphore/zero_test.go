package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestASemaphoreOfNoPermitsGrantsNone(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 0)
		require.False(t, w[0].TryAcquire(1))
		require.True(t, w[0].TryAcquire(0))
		available(v, 0, w[1])
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := w[0].Acquire(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "context deadline exceeded: 1 asked for, and there are 0 in all")
		v.Took(start, 500*time.Millisecond, "Acquire")
		waits := want(context.Background(), w[0], 2)
		v.Quiet()
		require.True(t, waits.Pending())
		require.NoError(t, w[1].Resize(context.Background(), 2))
		require.NoError(t, v.Granted(waits).Unlock())
		v.Flush()
		require.NoError(t, zksemaphore.NewWeighted(v.Session(), proving.SemPath, 0).Acquire(context.Background(), 1), "that is what the first process gave")
		require.ErrorIs(t, sems(v, 1, -1)[0].Acquire(context.Background(), 1), zksync.ErrMisuse)
	})
}

func TestAResizeToNothingPausesAll(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 4, 2)
		ctx := context.Background()
		held := v.Granted(want(ctx, w[0], 2))
		waits := want(ctx, w[1], 1)
		v.Settled(proving.SemQueue, 2)
		require.NoError(t, w[2].Resize(ctx, 0))
		v.Flush()
		require.True(t, held.Valid(), "nothing is taken away")
		available(v, 0, w[3])
		require.NoError(t, held.Unlock())
		late := want(ctx, w[3], 2)
		v.Quiet()
		require.True(t, waits.Pending() && late.Pending())
		require.False(t, w[0].TryAcquire(1))
		require.False(t, zksemaphore.NewWeighted(v.Session(), proving.SemPath, 0).TryAcquire(1), "0 is what it has now")
		list, err := w[0].Contenders(ctx)
		require.NoError(t, err)
		for _, c := range list {
			require.Equal(t, zksync.Waiting, c.State)
		}
		require.NoError(t, w[2].Resize(ctx, 3))
		require.NoError(t, v.Granted(waits).Unlock())
		require.NoError(t, v.Granted(late).Unlock())
		require.ErrorIs(t, w[2].Resize(ctx, -1), zksync.ErrMisuse)
	})
}

// An object that says nothing of permits is that of another type.
func TestABaseNodeWithoutPermitsIsNotASemaphoreOfNone(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.SemPath, `{"capacity":3}`)
		require.ErrorIs(t, sems(v, 1, 0)[0].Acquire(context.Background(), 1), zksync.ErrMisuse)
	})
}
