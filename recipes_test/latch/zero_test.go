package latch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// Like new CountDownLatch(0): for a batch that happens to be empty.
func TestALatchOfNoEventsIsOpenAtOnce(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, ls := context.Background(), latches(v, 3, 0)
		n, err := ls[0].Count(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, ls[0].Wait(ctx))
		require.NoError(t, ls[1].Wait(ctx))
		require.NoError(t, ls[1].CountDown(ctx), "as after the last event")
		v.Awaits(ls[2].Done(), "Done")
		v.Costs(0, func() { require.NoError(t, ls[2].Wait(ctx)) })
		require.ErrorIs(t, latches(v, 1, 1)[0].CountDown(ctx), zksync.ErrMisuse)
		require.ErrorIs(t, latches(v, 1, -1)[0].Wait(ctx), zksync.ErrMisuse)
	})
}

func TestTheFirstCallOfALatchOfNoEventsMayBeACountDown(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ls := latches(v, 2, 0)
		require.NoError(t, ls[0].CountDown(context.Background()))
		v.Flush()
		require.NoError(t, ls[1].Wait(context.Background()))
		require.Empty(t, v.Children(proving.LatchPath+"/counts"))
	})
}

func TestEveryFaultLeavesALatchOfNoEventsOpen(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ls := latches(v, 3, 0)
		return func(name string) {
			done := ls[2].Done()
			require.NoError(t, ls[0].CountDown(context.Background()), name)
			require.NoError(t, ls[1].Wait(context.Background()), name)
			v.Awaits(done, name)
		}
	})
}
