package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

const deadline = 300 * time.Millisecond

// soon is a context that ends after the deadline, and when it was made.
func soon(t *testing.T) (context.Context, time.Time) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx, start
}

func TestAcceptance007LockWithADeadlineOnAHeldLockEndsInTimeAndLeavesNoNode(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(2)
		held := v.lock(ms[0])
		before := v.children(lockPath)
		ctx, start := soon(t)
		_, err := ms[1].LockContext(ctx)
		v.took(start, deadline, "LockContext")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var e *zksync.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "lock", e.Op)
		require.Equal(t, lockPath, e.Path)
		v.left(lockPath, len(before), "a node was left when the call returned")
		require.Equal(t, before, v.children(lockPath))
		require.True(t, held.Valid())
		require.NoError(t, held.Unlock())
		require.NoError(t, v.lock(ms[1]).Unlock())
	})
}

func TestAcceptance008CancellingAWaiterRemovesItsNodeAndDoesNotDisturbTheQueue(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(4)
		held := v.lock(ms[0])
		first := v.line(ms[1])[0]
		ctx, cancel := context.WithCancelCause(context.Background())
		middle := begin(ctx, ms[2])
		v.queued(lockPath, 3)
		last := v.line(ms[3])[0]

		start := time.Now()
		cancel(nil)
		require.ErrorIs(t, v.failed(middle), context.Canceled)
		v.took(start, 0, "the cancelled call")
		v.left(lockPath, 3, "a node was left when the call returned")
		v.quiet()
		require.True(t, first.pending())
		require.True(t, last.pending(), "a cancelled entry promoted its successor")
		require.NoError(t, held.Unlock())
		l := v.granted(first)
		v.quiet()
		require.True(t, last.pending())
		require.NoError(t, l.Unlock())
		require.NoError(t, v.granted(last).Unlock())
		v.queued(lockPath, 0)
	})
}

func TestAcceptance008ACancelledWaiterOfASharedHandleLeavesTheOthersTheirPlace(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(2)
		held := v.lock(ms[0])
		ctx, cancel := context.WithCancel(context.Background())
		gone := begin(ctx, ms[1])
		v.queued(lockPath, 2)
		stays := begin(context.Background(), ms[1])
		v.quiet()
		place := v.children(lockPath)
		cancel()
		require.ErrorIs(t, v.failed(gone), context.Canceled)
		v.quiet()
		require.ElementsMatch(t, place, v.children(lockPath))
		require.NoError(t, held.Unlock())
		require.NoError(t, v.granted(stays).Unlock())
	})
}

func TestAcceptance008TheCauseOfACancellationIsToldAsWell(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(2)
		held := v.lock(ms[0])
		ctx, cancel := context.WithCancelCause(context.Background())
		a := begin(ctx, ms[1])
		v.queued(lockPath, 2)
		cause := &zksync.Error{Op: "test", Path: "/why", Err: zksync.ErrBroken}
		cancel(cause)
		err := v.failed(a)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, zksync.ErrBroken)
		require.NoError(t, held.Unlock())
	})
}

func TestAcceptance009AnEndedContextFailsWithoutARequest(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(v.session(zksync.WithTimeout(time.Minute)), lockPath)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		v.quiet()
		before := v.requests()
		_, err := m.LockContext(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = m.TryLockContext(ended)
		require.ErrorIs(t, err, context.Canceled)
		err = m.Do(ended, func(context.Context, *zksync.Lease) error {
			require.Fail(t, "must not run")
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		v.quiet()
		require.Equal(t, before, v.requests())
		require.False(t, v.exists(lockPath))
	})
}

func TestAcceptance023WakeUpsThatDoNotFreeTheLockDoNotMoveTheDeadline(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(4)
		held := v.lock(ms[0])
		ctx, cancel := context.WithCancel(context.Background())
		scout := begin(ctx, ms[1])
		v.queued(lockPath, 2)
		blocker := begin(ctx, ms[2])
		v.queued(lockPath, 3)
		limit := v.ample(deadline) // to queue in, too
		start := time.Now()
		late, end := context.WithTimeout(context.Background(), limit)
		defer end()
		a := begin(late, ms[3])
		v.queued(lockPath, 4)
		// Everybody ahead but the holder leaves while the last one waits.
		time.AfterFunc(limit/3, cancel)
		require.ErrorIs(t, v.failed(a), context.DeadlineExceeded)
		v.took(start, limit, "LockContext")
		require.Error(t, v.failed(scout))
		require.Error(t, v.failed(blocker))
		v.left(lockPath, 1, "only the holder stays")
		require.NoError(t, held.Unlock())
	})
}
