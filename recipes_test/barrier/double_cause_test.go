package barrier_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// The context of a Leave ends because something else is broken. The party may wait again all the same.
func TestALeaveThatWasCutShortBecauseAnotherBarrierIsBrokenMayWaitAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 2, 2)
		allPass(v, enters(bs...))
		ctx, cancel := context.WithCancelCause(context.Background())
		left := make(chan error, 1)
		go func() { left <- bs[0].Leave(ctx) }()
		v.Quiet()
		cancel(zksync.ErrBroken)
		require.ErrorIs(t, <-left, context.Canceled)
		again := leaves(bs[0])
		nonePasses(v, again)
		allPass(v, append(leaves(bs[1]), again...))
	})
}
