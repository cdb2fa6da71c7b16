package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
)

func TestALatchTakesOneRequestForAnEventAndTwoForAWait(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		latch := func() *zkbarrier.Latch { return zkbarrier.NewLatch(calm(v), latchPath, 3) }
		count := func(l *zkbarrier.Latch) func() { return func() { require.NoError(t, l.CountDown(ctx)) } }
		wait := func(l *zkbarrier.Latch) func() { return func() { require.NoError(t, l.Wait(ctx)) } }
		v.remaining(latch(), 3) // makes the nodes

		a, b, c := latch(), latch(), latch()
		var waiting *attempt
		require.Equal(t, 2, v.costs(func() { waiting = waits(ctx, c.Wait) }))
		require.Equal(t, 1, v.costs(count(a)))
		require.Equal(t, 1, v.costs(count(a)))
		require.Equal(t, 3, v.costs(func() { v.remaining(b, 1) }))
		require.Equal(t, 2, v.costs(func() { count(b)(); v.passes(waiting) }), "the last event, and nothing for who waits")

		require.Equal(t, 4, v.costs(count(a)), "it has to find out that the latch is open")
		require.Equal(t, 2, v.costs(count(a)), "and now to make sure")
		require.Equal(t, 3, v.costs(wait(a)))
		require.Equal(t, 5, v.costs(wait(b)), "and for the first time")

		require.NoError(t, latch().Reset(ctx))
		require.Equal(t, 3, v.costs(count(a)), "somebody else had reset it")
		require.Equal(t, 1, v.costs(count(a)))
		require.Equal(t, 4, v.costs(func() { waiting = waits(ctx, c.Wait) }))
		require.Equal(t, 2, v.costs(func() { count(a)(); v.passes(waiting) }))
		require.Equal(t, 3, v.costs(wait(a)))
	})
}

func TestAGateTakesOneRequestToSetOrLiftAndTwoToWait(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		gate := func() *zkbarrier.Gate { return zkbarrier.NewGate(calm(v), "/gates/db") }
		v.put("/gates/db", "")
		g, other := gate(), gate()
		var waiting *attempt
		for range 2 {
			require.Equal(t, 1, v.costs(func() { require.NoError(t, g.Set(ctx)) }))
			require.Equal(t, 1, v.costs(func() { require.NoError(t, other.Set(ctx)) }), "again")
			require.Equal(t, 2, v.costs(func() { waiting = waits(ctx, other.Wait) }))
			require.Equal(t, 1, v.costs(func() { require.NoError(t, g.Lift(ctx)); v.passes(waiting) }))
			require.Equal(t, 1, v.costs(func() { require.NoError(t, g.Lift(ctx)) }), "again")
			require.Equal(t, 2, v.costs(func() { require.NoError(t, other.Wait(ctx)) }))
		}
	})
}
