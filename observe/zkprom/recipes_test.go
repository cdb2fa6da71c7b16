package zkprom_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestTheEventsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zkprom.New(zkprom.WithPaths("/queues/*"))
		for _, event := range []string{"put", "put", "received", "nacked", "received", "acked"} {
			c.Delivery(context.Background(), zksync.DeliveryData{Path: "/queues/mail", Event: event})
			require.Len(t, exposed(t, c, "deliveries"), 4, "from the first event on")
		}
		require.Equal(t, series{
			`deliveries_total{event="put",name="/queues/*"}`: 2, `deliveries_total{event="received",name="/queues/*"}`: 2,
			`deliveries_total{event="acked",name="/queues/*"}`: 1, `deliveries_total{event="nacked",name="/queues/*"}`: 1,
		}, exposed(t, c, "deliveries"))
	})
}

func TestTheTicksOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zkprom.New()
		for _, d := range []zksync.TickData{
			{Outcome: "done"}, {Outcome: "done"}, {Outcome: "failed", Err: errors.New("no")}, {Outcome: "panicked"}, {Outcome: "missed", Missed: 7}, {Outcome: "missed", Missed: 1},
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
