package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestDoRunsItsFunctionUnderTheLockAndUnlocks(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		var held *zksync.Lease
		err := ms[0].Do(context.Background(), func(ctx context.Context, l *zksync.Lease) error {
			held = l
			require.NoError(t, ctx.Err())
			require.True(t, l.Valid())
			require.False(t, ms[1].TryLock())
			return nil
		})
		require.NoError(t, err)
		require.ErrorIs(t, held.Err(), zksync.ErrReleased)
		v.Left(proving.LockPath, 0, "unlocked")
		err = ms[0].Do(context.Background(), func(context.Context, *zksync.Lease) error { return proving.ErrTest })
		require.ErrorIs(t, err, proving.ErrTest)
		v.Left(proving.LockPath, 0, "unlocked")
	})
}

func TestDoUnlocksWhenItsFunctionPanics(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		require.PanicsWithValue(t, proving.ErrTest, func() {
			_ = m.Do(context.Background(), func(context.Context, *zksync.Lease) error { panic(proving.ErrTest) })
		})
		v.Left(proving.LockPath, 0, "unlocked")
		require.NoError(t, v.Lock(m).Unlock())
	})
}

func TestDoCancelsItsFunctionWhenTheLeaseIsLost(t *testing.T) {
	for name, result := range map[string]error{"which returns nil": nil, "which returns an error": proving.ErrTest} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				err := zksync.NewMutex(s, proving.LockPath).Do(context.Background(), func(ctx context.Context, l *zksync.Lease) error {
					v.Expire(s)
					v.Awaits(ctx.Done(), "the function to be told")
					require.ErrorIs(t, context.Cause(ctx), zksync.ErrLost)
					return result
				})
				if result == nil {
					require.ErrorIs(t, err, zksync.ErrLost)
				} else {
					require.ErrorIs(t, err, result)
				}
			})
		})
	}
}

func TestDoPassesTheCallersContextOn(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		type key struct{}
		limit := v.Ample(proving.Deadline) // to lock in, too
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err := m.Do(context.WithValue(ctx, key{}, "value"), func(ctx context.Context, l *zksync.Lease) error {
			require.Equal(t, "value", ctx.Value(key{}))
			require.Equal(t, "value", l.Context().Value(key{}))
			v.Awaits(ctx.Done(), "the deadline")
			v.Took(start, limit, "the deadline of the function")
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			require.True(t, l.Valid(), "the caller's deadline is not the lease's")
			require.NoError(t, l.Context().Err())
			return nil
		})
		require.NoError(t, err)
		v.Queued(proving.LockPath, 0)
	})
}

func TestTheContextOfALeaseHasTheValuesButNotTheEndOfTheCallers(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), key{}, "value"), time.Hour)
		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		cancel()
		require.Equal(t, "value", l.Context().Value(key{}))
		require.NoError(t, l.Context().Err())
		_, bounded := l.Context().Deadline()
		require.False(t, bounded)
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		require.ErrorIs(t, l.Context().Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrReleased)
	})
}
