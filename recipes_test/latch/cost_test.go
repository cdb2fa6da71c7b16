package latch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
)

func TestALatchTakesOneRequestForAnEventAndTwoForAWait(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		latch := func() *zklatch.Latch { return zklatch.New(proving.Calm(v), proving.LatchPath, 3) }
		count := func(l *zklatch.Latch) func() { return func() { require.NoError(t, l.CountDown(ctx)) } }
		wait := func(l *zklatch.Latch) func() { return func() { require.NoError(t, l.Wait(ctx)) } }
		made(v, 3)

		a, b, c := latch(), latch(), latch()
		var waiting *proving.Attempt
		v.Costs(2, func() { waiting = proving.Waits(ctx, c.Wait) })
		v.Costs(1, count(a))
		v.Costs(1, count(a))
		v.Costs(3, func() { v.Remaining(b, 1) })
		v.Costs(2, func() { count(b)(); v.Passes(waiting) }, "the last event, and nothing for who waits")

		v.Costs(2, count(a), "it has to find out that the latch is open")
		v.Costs(0, count(a), "and now it knows")
		v.Costs(0, wait(a))
		v.Costs(1, wait(b), "it has opened it, and has no watch yet")
		v.Costs(0, wait(b))
		v.Costs(3, wait(latch()), "the first use of an object")
		v.Costs(1, wait(c), "an event has said so, and it has no watch yet")
		v.Costs(0, count(c))
	})
}

// The event is refused; the base node is looked for, and made; the event counts.
func TestTheFirstEventOfALatchIsFourRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put("/latches", "")
		v.Costs(4, func() {
			require.NoError(t, zklatch.New(proving.Calm(v), "/latches/new", 3).CountDown(context.Background()))
		})
		v.Costs(1+4, func() {
			proving.Waits(t.Context(), zklatch.New(proving.Calm(v), "/latches/other", 3).Wait)
		}, "a sync; and the wait tells that there is nothing, looks, makes, waits")
	})
}

func TestAGateTakesOneRequestToCloseAndTwoToOpenOrWait(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		gate := func() *zklatch.Gate { return zklatch.NewGate(proving.Calm(v), "/gates/db") }
		v.Put("/gates/db", "")
		g, other := gate(), gate()
		var waiting *proving.Attempt
		for _, look := range []int{1, 0} { // the first use of the path in a session
			v.Costs(look+1, func() { require.NoError(t, g.Close(ctx)) })
			v.Costs(look+1, func() { require.NoError(t, other.Close(ctx)) }, "again")
			v.Costs(2, func() { waiting = proving.Waits(ctx, other.Wait) })
			v.Costs(2, func() { require.NoError(t, g.Open(ctx)); v.Passes(waiting) }, "one of them marks the node that the other deletes")
			v.Costs(1, func() { require.NoError(t, g.Open(ctx)) }, "again")
			v.Costs(2, func() { require.NoError(t, other.Wait(ctx)) })
		}
	})
}
