package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

var errTest = errors.New("an error of the test's own")

func TestDoRunsItsFunctionUnderTheLockAndUnlocks(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(2)
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
		v.left(lockPath, 0, "unlocked")
		err = ms[0].Do(context.Background(), func(context.Context, *zksync.Lease) error { return errTest })
		require.ErrorIs(t, err, errTest)
		v.left(lockPath, 0, "unlocked")
	})
}

func TestDoUnlocksWhenItsFunctionPanics(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := v.mutexes(1)[0]
		require.PanicsWithValue(t, errTest, func() {
			_ = m.Do(context.Background(), func(context.Context, *zksync.Lease) error { panic(errTest) })
		})
		v.left(lockPath, 0, "unlocked")
		require.NoError(t, v.lock(m).Unlock())
	})
}

func TestDoCancelsItsFunctionWhenTheLeaseIsLost(t *testing.T) {
	for name, result := range map[string]error{"which returns nil": nil, "which returns an error": errTest} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				s := v.session()
				err := zksync.NewMutex(s, lockPath).Do(context.Background(), func(ctx context.Context, l *zksync.Lease) error {
					v.expire(s)
					v.awaits(ctx.Done(), "the function to be told")
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
	each(t, func(t *testing.T, v *env) {
		m := v.mutexes(1)[0]
		type key struct{}
		limit := v.ample(deadline) // to lock in, too
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err := m.Do(context.WithValue(ctx, key{}, "value"), func(ctx context.Context, l *zksync.Lease) error {
			require.Equal(t, "value", ctx.Value(key{}))
			require.Equal(t, "value", l.Context().Value(key{}))
			v.awaits(ctx.Done(), "the deadline")
			v.took(start, limit, "the deadline of the function")
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			require.True(t, l.Valid(), "the caller's deadline is not the lease's")
			require.NoError(t, l.Context().Err())
			return nil
		})
		require.NoError(t, err)
		v.queued(lockPath, 0)
	})
}

func TestTheContextOfALeaseHasTheValuesButNotTheEndOfTheCallers(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := v.mutexes(1)[0]
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
