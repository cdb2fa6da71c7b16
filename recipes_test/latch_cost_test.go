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
		v.costs(2, func() { waiting = waits(ctx, c.Wait) })
		v.costs(1, count(a))
		v.costs(1, count(a))
		v.costs(3, func() { v.remaining(b, 1) })
		v.costs(2, func() { count(b)(); v.passes(waiting) }, "the last event, and nothing for who waits")

		v.costs(4, count(a), "it has to find out that the latch is open")
		v.costs(2, count(a), "and now to make sure")
		v.costs(3, wait(a))
		v.costs(5, wait(b), "and for the first time")

		require.NoError(t, latch().Reset(ctx))
		v.costs(3, count(a), "somebody else had reset it")
		v.costs(1, count(a))
		v.costs(4, func() { waiting = waits(ctx, c.Wait) })
		v.costs(2, func() { count(a)(); v.passes(waiting) })
		v.costs(3, wait(a))
	})
}

func TestAGateTakesOneRequestToSetAndTwoToLiftOrWait(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		gate := func() *zkbarrier.Gate { return zkbarrier.NewGate(calm(v), "/gates/db") }
		v.put("/gates/db", "")
		g, other := gate(), gate()
		var waiting *attempt
		for range 2 {
			v.costs(1, func() { require.NoError(t, g.Set(ctx)) })
			v.costs(1, func() { require.NoError(t, other.Set(ctx)) }, "again")
			v.costs(2, func() { waiting = waits(ctx, other.Wait) })
			v.costs(2, func() { require.NoError(t, g.Lift(ctx)); v.passes(waiting) }, "one of them marks the node that the other deletes")
			v.costs(1, func() { require.NoError(t, g.Lift(ctx)) }, "again")
			v.costs(2, func() { require.NoError(t, other.Wait(ctx)) })
		}
	})
}
