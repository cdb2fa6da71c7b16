package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance007LockWithADeadlineOnAHeldLockEndsInTimeAndLeavesNoNode(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		held := v.Lock(ms[0])
		before := v.Children(proving.LockPath)
		ctx, start := proving.Soon(t)
		_, err := ms[1].LockContext(ctx)
		v.Took(start, proving.Deadline, "LockContext")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var e *zksync.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "lock", e.Op)
		require.Equal(t, proving.LockPath, e.Path)
		v.Left(proving.LockPath, len(before), "a node was left when the call returned")
		require.Equal(t, before, v.Children(proving.LockPath))
		require.True(t, held.Valid())
		require.NoError(t, held.Unlock())
		require.NoError(t, v.Lock(ms[1]).Unlock())
	})
}

func TestAcceptance008CancellingAWaiterRemovesItsNodeAndDoesNotDisturbTheQueue(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(4)
		held := v.Lock(ms[0])
		first := v.Line(ms[1])[0]
		ctx, cancel := context.WithCancelCause(context.Background())
		middle := proving.Begin(ctx, ms[2])
		v.Queued(proving.LockPath, 3)
		last := v.Line(ms[3])[0]

		start := time.Now()
		cancel(nil)
		require.ErrorIs(t, v.Failed(middle), context.Canceled)
		v.Took(start, 0, "the cancelled call")
		v.Left(proving.LockPath, 3, "a node was left when the call returned")
		v.Quiet()
		require.True(t, first.Pending())
		require.True(t, last.Pending(), "a cancelled entry promoted its successor")
		require.NoError(t, held.Unlock())
		l := v.Granted(first)
		v.Quiet()
		require.True(t, last.Pending())
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(last).Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance008ACancelledWaiterOfASharedHandleLeavesTheOthersTheirPlace(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		held := v.Lock(ms[0])
		ctx, cancel := context.WithCancel(context.Background())
		gone := proving.Begin(ctx, ms[1])
		v.Queued(proving.LockPath, 2)
		stays := proving.Begin(context.Background(), ms[1])
		v.Quiet()
		place := v.Children(proving.LockPath)
		cancel()
		require.ErrorIs(t, v.Failed(gone), context.Canceled)
		v.Quiet()
		require.ElementsMatch(t, place, v.Children(proving.LockPath))
		require.NoError(t, held.Unlock())
		require.NoError(t, v.Granted(stays).Unlock())
	})
}

func TestAcceptance008TheCauseOfACancellationIsToldAsWell(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		held := v.Lock(ms[0])
		ctx, cancel := context.WithCancelCause(context.Background())
		a := proving.Begin(ctx, ms[1])
		v.Queued(proving.LockPath, 2)
		cause := &zksync.Error{Op: "test", Path: "/why", Err: zksync.ErrBroken}
		cancel(cause)
		err := v.Failed(a)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, zksync.ErrBroken)
		require.NoError(t, held.Unlock())
	})
}

func TestAcceptance009AnEndedContextFailsWithoutARequest(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(zksync.WithTimeout(time.Minute)), proving.LockPath)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		v.Quiet()
		before := v.Requests()
		_, err := m.LockContext(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = m.TryLockContext(ended)
		require.ErrorIs(t, err, context.Canceled)
		err = m.Do(ended, func(context.Context, *zksync.Lease) error {
			require.Fail(t, "must not run")
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		v.Quiet()
		require.Equal(t, before, v.Requests())
		require.False(t, v.Exists(proving.LockPath))
	})
}

func TestAcceptance023WakeUpsThatDoNotFreeTheLockDoNotMoveTheDeadline(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(4)
		held := v.Lock(ms[0])
		ctx, cancel := context.WithCancel(context.Background())
		scout := proving.Begin(ctx, ms[1])
		v.Queued(proving.LockPath, 2)
		blocker := proving.Begin(ctx, ms[2])
		v.Queued(proving.LockPath, 3)
		limit := v.Ample(proving.Deadline) // to queue in, too
		start := time.Now()
		late, end := context.WithTimeout(context.Background(), limit)
		defer end()
		a := proving.Begin(late, ms[3])
		v.Queued(proving.LockPath, 4)
		// Everybody ahead but the holder leaves while the last one waits.
		time.AfterFunc(limit/3, cancel)
		require.ErrorIs(t, v.Failed(a), context.DeadlineExceeded)
		v.Took(start, limit, "LockContext")
		require.Error(t, v.Failed(scout))
		require.Error(t, v.Failed(blocker))
		v.Left(proving.LockPath, 1, "only the holder stays")
		require.NoError(t, held.Unlock())
	})
}
