package zkprom_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheEventsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zkprom.New(zkprom.WithPaths("/queues/*"))
		for _, event := range []string{"put", "put", "received", "nacked", "received", "acked", "dead"} {
			c.Delivery(context.Background(), zksync.DeliveryData{Path: "/queues/mail", Event: event})
			require.Len(t, exposed(t, c, "deliveries"), 5, "from the first event on")
		}
		require.Equal(t, series{
			`deliveries_total{event="put",name="/queues/*"}`: 2, `deliveries_total{event="received",name="/queues/*"}`: 2,
			`deliveries_total{event="acked",name="/queues/*"}`: 1, `deliveries_total{event="nacked",name="/queues/*"}`: 1, `deliveries_total{event="dead",name="/queues/*"}`: 1,
		}, exposed(t, c, "deliveries"))
	})
}

func TestTheTicksOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zkprom.New()
		for _, d := range []zksync.TickData{
			{Outcome: "done"}, {Outcome: "done", Missed: 3}, {Outcome: "failed", Err: errors.New("no")}, {Outcome: "panicked"}, {Outcome: "missed", Missed: 7}, {Outcome: "missed", Missed: 1},
		} {
			d.Path, d.Job = "/cron", "report"
			c.Tick(context.Background(), d)
		}
		require.Equal(t, series{
			`ticks_total{job="report",outcome="done"}`: 2, `ticks_total{job="report",outcome="failed"}`: 1, `ticks_total{job="report",outcome="panicked"}`: 1,
			`ticks_total{job="report",outcome="abandoned"}`: 0, `ticks_total{job="report",outcome="missed"}`: 8,
		}, exposed(t, c, "ticks"))
	})
}

func TestTheItemsOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zkprom.New()
		for _, d := range []zksync.AssignData{
			{Item: "a", Event: "gained"}, {Item: "b", Event: "gained"}, {Item: "c", Event: "gained"},
			{Item: "a", Event: "done"}, {Item: "b", Event: "given up", Err: errors.New("no")}, {Item: "b", Event: "gained"}, {Item: "b", Event: "given up"},
		} {
			d.Path, d.Name = "/batch", "invoices"
			c.Assign(context.Background(), d)
		}
		require.Equal(t, series{
			`items{group="invoices",state="running"}`: 1, `items{group="invoices",state="done"}`: 1, `items{group="invoices",state="failed"}`: 1,
		}, exposed(t, c, "items"))
	})
}

// The same from the recipes themselves.
func TestWhatQueuesJobsAndGroupsDo(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
		q := zkqueue.New[string](s, "/queue", zksync.WithName("mail"))
		require.NoError(t, q.Put(t.Context(), "letter"))
		for range 3 {
			d, err := q.Receive(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
			if d.Attempt < 3 {
				require.NoError(t, d.Nack(t.Context()))
			} else {
				require.NoError(t, d.Ack(t.Context()))
			}
		}
		require.Equal(t, series{
			`deliveries_total{event="put",name="mail"}`: 1, `deliveries_total{event="received",name="mail"}`: 3,
			`deliveries_total{event="acked",name="mail"}`: 1, `deliveries_total{event="nacked",name="mail"}`: 2, `deliveries_total{event="dead",name="mail"}`: 0,
		}, exposed(t, c, "deliveries"))
		require.Equal(t, 3.0, ends(t, c)[`hold_seconds_sum{end="released",kind="lock",name="mail"}`])

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
		defer cancel()
		jobs := zkcron.New(s, "/cron")
		n := 0
		jobs.Every("report", time.Minute, func(context.Context, zkcron.Tick) error {
			if n++; n == 3 {
				return errors.New("no")
			}
			return nil
		})
		require.ErrorIs(t, jobs.Run(ctx), context.DeadlineExceeded)
		ticks := exposed(t, c, "ticks")
		require.Equal(t, float64(n-1), ticks[`ticks_total{job="report",outcome="done"}`])
		require.Equal(t, 1.0, ticks[`ticks_total{job="report",outcome="failed"}`])
		require.GreaterOrEqual(t, n, 9)

		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g := zkgroup.New(s, "/group", zksync.WithName("batch"))
		m, err := g.Join(t.Context(), zkgroup.Member{ID: "one"})
		require.NoError(t, err)
		failed := false
		require.NoError(t, g.Assign(ctx, m, []string{"a", "b", "c"}, func(ctx context.Context, item string, _ *zksync.Lease) error {
			switch {
			case item == "a":
				return nil
			case item == "b" && !failed:
				failed = true
				return errors.New("no")
			}
			time.Sleep(10 * time.Second) // a is done, b was tried again, c runs
			assert.Equal(t, 2.0, read(t, c, "items")[`items{group="batch",state="running"}`])
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		require.Equal(t, series{
			`items{group="batch",state="running"}`: 0, `items{group="batch",state="done"}`: 1, `items{group="batch",state="failed"}`: 1,
		}, exposed(t, c, "items"))
		for name, n := range now(t, c) {
			require.Zero(t, n, name)
		}
	})
}
