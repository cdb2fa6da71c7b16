package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

// daily is a Cron with a tick each day at noon, far away.
func daily(s *zksync.Session, f zkcron.Func) *zkcron.Cron {
	c := zkcron.New(s, path)
	c.At(job, "0 12 * * *", f)
	return c
}

func TestATickTakesTwoRequestsAndTheWaitForItNone(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		nothing := func(context.Context, zkcron.Tick) error { return nil }
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(v.Span(30*time.Second, 0)) // a waiter asks at this second of each minute
		made := starts(ctx, daily(proving.Calm(v), nothing))
		v.Queued(queue, 1)
		ends(v, cancel, made)

		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		first, second := daily(proving.Calm(v), nothing), daily(proving.Calm(v), nothing)
		look := proving.Calm(v)
		var a, b *proving.Attempt
		v.Costs(6, func() { a = starts(ctx, first); v.Queued(queue, 1) }, "the terms, the entry, the record twice, and watches of the entry and of the requests")
		others, leave := context.WithCancel(t.Context())
		v.Costs(4, func() { b = starts(others, second); v.Queued(queue, 2) }, "the terms, the entry, the list, the watches")
		v.Costs(2, func() { last(v, look) })
		if v.Virtual {
			noon := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
			before := time.Until(noon) - time.Second
			v.Costs(int((before+time.Second)/time.Minute), func() { time.Sleep(before) }, "a waiter asks once in a session timeout, the process with the lease not at all")
			v.Costs(2, func() { time.Sleep(2 * time.Second) }, "the start and the end")
			require.Equal(t, noon, last(v, look).Scheduled)
		}
		v.Costs(1, func() { ends(v, leave, b); v.Queued(queue, 1) }, "a delete")
		others, leave = context.WithCancel(t.Context())
		defer leave()
		b = starts(others, second)
		v.Settled(queue, 2)
		v.Costs(1+3, func() { ends(v, cancel, a); v.Queued(queue, 1) }, "a delete; then the record twice, and a watch of the requests")
		ends(v, leave, b)
	})
}

func TestAJobIsMadeWithFiveRequestsMore(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(path, "")
		ctx, cancel := context.WithCancel(t.Context())
		var a *proving.Attempt
		c := daily(proving.Calm(v), func(context.Context, zkcron.Tick) error { return nil })
		v.Costs(6+5, func() { a = starts(ctx, c); v.Queued(queue, 1) })
		ends(v, cancel, a)
	})
}
