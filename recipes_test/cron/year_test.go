package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

// A year on two nodes, of which the first one stops in July. In 2000 the clocks of New York were set forward at two on
// April 2, and back at two on October 29.
func TestAYearOfNightsAcrossTheChangesOfTheClocks(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		york, err := time.LoadLocation("America/New_York")
		require.NoError(t, err)
		var nights, skipped, doubled book
		cron := func(node int) *zkcron.Cron {
			c := zkcron.New(v.Session(zksync.WithTimeout(time.Hour)), path)
			c.At("night", "0 3 * * *", nights.writes(node, nil), zkcron.In(york))
			c.At("skipped", "CRON_TZ=America/New_York 30 2 * * *", skipped.writes(node, nil))
			c.At("doubled", "30 1 * * *", doubled.writes(node, nil), zkcron.In(york))
			return c
		}
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, cron(0))
		v.Settled(jobs+"/night/queue", 1)
		others, leave := context.WithCancel(t.Context())
		b := starts(others, cron(1))
		time.Sleep(time.Until(time.Date(2000, 7, 1, 12, 0, 0, 0, york)))
		ends(v, cancel, a)
		time.Sleep(time.Until(time.Date(2001, 1, 1, 0, 0, 0, 0, york)))
		ends(v, leave, b)

		all := nights.all()
		require.Len(t, all, 366)
		for i, e := range all {
			want := time.Date(2000, 1, 1+i, 3, 0, 0, 0, york)
			require.True(t, want.Equal(e.tick.Scheduled), "%v", e)
			require.Equal(t, "03:00", e.tick.Scheduled.Format("15:04"), "in the zone of the job")
			require.True(t, want.Equal(e.at), "%v", e)
			require.Zero(t, e.tick.Missed)
			require.Equal(t, want.YearDay() > 183, e.node == 1)
		}
		nights.grows(t, "")
		require.Len(t, skipped.all(), 365, "no half past two on April 2")
		require.Len(t, doubled.all(), 367, "two times half past one on October 29")
		count := map[string]int{}
		for _, e := range append(skipped.all(), doubled.all()...) {
			count[e.tick.Scheduled.Format("Jan 2 15:04")]++
		}
		require.Zero(t, count["Apr 2 02:30"])
		require.Equal(t, 2, count["Oct 29 01:30"])
		require.Equal(t, 1, count["Oct 29 02:30"])
	})
}
