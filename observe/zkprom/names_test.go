package zkprom_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zksync"
)

// waits begins an acquisition at each path, and returns how many wait by name.
func waits(t *testing.T, c *zkprom.Collector, at ...zksync.AcquireStartData) map[string]float64 {
	t.Helper()
	for _, d := range at {
		d.Kind = zksync.KindLock
		c.AcquireStart(context.Background(), d)
	}
	got := make(map[string]float64)
	for line := range strings.Lines(exposition(t, c)) {
		var name string
		var n float64
		if _, err := fmt.Sscanf(line, `menagerie_waiting{kind="lock",name=%q} %g`, &name, &n); err == nil {
			got[name] = n
		}
	}
	return got
}

func TestALockIsNamedByItsNameOrAPattern(t *testing.T) {
	c := zkprom.New(zkprom.WithPaths("/orders/*/lock", "/orders/*/*", "/users/u-*"))
	require.Equal(t, map[string]float64{"stock": 1, "/orders/*/lock": 2, "/orders/*/*": 1, "/users/u-*": 1, "other": 3}, waits(t, c,
		zksync.AcquireStartData{Name: "stock", Path: "/orders/1/lock"},
		zksync.AcquireStartData{Path: "/orders/1/lock"}, zksync.AcquireStartData{Path: "/orders/2/lock"},
		zksync.AcquireStartData{Path: "/orders/2/item"}, zksync.AcquireStartData{Path: "/users/u-5"},
		zksync.AcquireStartData{Path: "/orders/1/2/lock"}, zksync.AcquireStartData{Path: "/users/x"}, zksync.AcquireStartData{Name: "other", Path: "/users/u-5"},
	))
}

func TestTheNumberOfNamesIsBounded(t *testing.T) {
	for limit, opts := range map[int][]zkprom.Option{200: nil, 3: {zkprom.WithMaxNames(3)}, 0: {zkprom.WithMaxNames(0)}} {
		c := zkprom.New(append(opts, zkprom.WithPaths("/late"))...)
		c.AcquireStart(context.Background(), zksync.AcquireStartData{Kind: zksync.KindLock}) // no name takes no place
		for range 2 {                                                                        // a name that is there stays
			for i := range 300 {
				c.AcquireStart(context.Background(), zksync.AcquireStartData{Name: fmt.Sprint("n", i), Kind: zksync.KindLock})
				c.Delivery(context.Background(), zksync.DeliveryData{Name: fmt.Sprint("n", i), Event: "put"})
				c.Assign(context.Background(), zksync.AssignData{Name: fmt.Sprint("n", i), Event: "gained"})
				c.Tick(context.Background(), zksync.TickData{Job: fmt.Sprint("j", i), Outcome: "done"})
			}
		}
		got := waits(t, c, zksync.AcquireStartData{Path: "/late"})
		require.Len(t, got, limit+1)
		require.Equal(t, float64(2*(300-limit)+2), got["other"])
		for name, n := range got {
			if name != "other" {
				require.Equal(t, 2.0, n, name)
			}
		}
		require.Len(t, read(t, c, `deliveries_total{event="put"`), limit+1)
		require.Len(t, read(t, c, `ticks_total{job="`), 5*(limit+1))
		require.Len(t, read(t, c, `items{`), 3*(limit+1))
		require.Equal(t, float64(2*(300-limit)), read(t, c, `ticks_total{job="other",outcome="done"`)[`ticks_total{job="other",outcome="done"}`])
	}
}

func TestANameThatIsNoTextDoesNotBreakTheExposition(t *testing.T) {
	c := zkprom.New()
	require.Equal(t, map[string]float64{"a\uFFFDb": 2}, waits(t, c, zksync.AcquireStartData{Name: "a\xffb"}, zksync.AcquireStartData{Name: "a\xfeb"}))
	c.Tick(context.Background(), zksync.TickData{Job: "\xff", Outcome: "done"})
	require.Equal(t, 1.0, read(t, c, "ticks")["ticks_total{job=\"\uFFFD\",outcome=\"done\"}"])
}

func TestAMalformedPatternIsAnErrorOfRegister(t *testing.T) {
	require.ErrorIs(t, prometheus.NewRegistry().Register(zkprom.New(zkprom.WithPaths("/a", "/[a"))), path.ErrBadPattern)
}

func TestPatternsOfSeveralOptionsAdd(t *testing.T) {
	c := zkprom.New(zkprom.WithPaths("["), zkprom.WithPaths("/a/*"))
	require.ErrorContains(t, prometheus.NewRegistry().Register(c), `pattern "["`)
	require.Equal(t, map[string]float64{"/a/*": 1, "/b/*": 1}, waits(t, zkprom.New(zkprom.WithPaths("/a/*"), zkprom.WithPaths("/b/*")),
		zksync.AcquireStartData{Path: "/a/1"}, zksync.AcquireStartData{Path: "/b/1"}))
}
