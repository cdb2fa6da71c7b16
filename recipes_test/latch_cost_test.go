package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zklatch"
)

func TestALatchTakesOneRequestForAnEventAndTwoForAWait(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		latch := func() *zklatch.Latch { return zklatch.New(calm(v), latchPath, 3) }
		count := func(l *zklatch.Latch) func() { return func() { require.NoError(t, l.CountDown(ctx)) } }
		wait := func(l *zklatch.Latch) func() { return func() { require.NoError(t, l.Wait(ctx)) } }
		v.remaining(latch(), 3) // makes the nodes

		a, b, c := latch(), latch(), latch()
		var waiting *attempt
		v.costs(2, func() { waiting = waits(ctx, c.Wait) })
		v.costs(1, count(a))
		v.costs(1, count(a))
		v.costs(3, func() { v.remaining(b, 1) })
		v.costs(2, func() { count(b)(); v.passes(waiting) }, "the last event, and nothing for who waits")

		v.costs(4, count(a), "it has to find out that the latch is open")
		v.costs(0, count(a), "and now it knows")
		v.costs(0, wait(a))
		v.costs(0, wait(b), "it has opened it")
		v.costs(5, wait(latch()), "the first use of an object")
		v.costs(0, wait(c), "it was told")
	})
}

func TestAGateTakesOneRequestToSetAndTwoToLiftOrWait(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		gate := func() *zklatch.Gate { return zklatch.NewGate(calm(v), "/gates/db") }
		v.put("/gates/db", "")
		g, other := gate(), gate()
		var waiting *attempt
		for range 2 {
			v.costs(1, func() { require.NoError(t, g.Close(ctx)) })
			v.costs(1, func() { require.NoError(t, other.Close(ctx)) }, "again")
			v.costs(2, func() { waiting = waits(ctx, other.Wait) })
			v.costs(2, func() { require.NoError(t, g.Open(ctx)); v.passes(waiting) }, "one of them marks the node that the other deletes")
			v.costs(1, func() { require.NoError(t, g.Open(ctx)) }, "again")
			v.costs(2, func() { require.NoError(t, other.Wait(ctx)) })
		}
	})
}
