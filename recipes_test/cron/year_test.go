package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A year on two nodes, of which the first one stops in July. In 2000 the clocks of New York were set forward at two on
// April 2, and back at two on October 29. With -short it is the time around the first of these days.
func TestEveryNightOfAYearAcrossTheChangesOfTheClocks(t *testing.T) {
	from, firsts, nights := 1, 182, 366
	if testing.Short() {
		from, firsts, nights = 88, 91, 96 // the clocks change in the night of 2 April, the 93rd
	}
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		york, err := time.LoadLocation("America/New_York")
		require.NoError(t, err)
		var b book
		night := func(node int) *zkcron.Cron {
			c := zkcron.New(v.Session(zksync.WithTimeout(12*time.Hour)), path)
			c.At(job, "0 3 * * *", b.writes(node, nil), zkcron.WithLocation(york))
			return c
		}
		time.Sleep(time.Until(time.Date(2000, 1, from, 0, 0, 0, 0, york)))
		ctx, cancel := context.WithCancel(t.Context())
		first := starts(ctx, night(0))
		v.Settled(queue, 1)
		others, leave := context.WithCancel(t.Context())
		second := starts(others, night(1))
		time.Sleep(time.Until(time.Date(2000, 1, firsts, 12, 0, 0, 0, york)))
		ends(v, cancel, first)
		time.Sleep(time.Until(time.Date(2000, 1, nights+1, 0, 0, 0, 0, york)))
		ends(v, leave, second)

		all := b.all()
		require.Len(t, all, nights-from+1)
		for i, e := range all {
			want := time.Date(2000, 1, from+i, 3, 0, 0, 0, york)
			require.True(t, want.Equal(e.tick.Scheduled), "%v", e)
			require.Equal(t, "03:00", e.tick.Scheduled.Format("15:04"), "in the zone of the job")
			require.True(t, want.Equal(e.at), "%v", e)
			require.Zero(t, e.tick.Missed)
			require.Equal(t, from+i > firsts, e.node == 1)
		}
		b.grows(t, "")
	}, zktest.WithVirtualLimit(400*24*time.Hour))
}

func TestATimeThatTheClockSkipsIsNoTickAndOneThatComesTwiceIsTwo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		york, err := time.LoadLocation("America/New_York")
		require.NoError(t, err)
		var b book
		for _, day := range []time.Time{time.Date(2000, 4, 2, 0, 30, 0, 0, york), time.Date(2000, 10, 29, 0, 30, 0, 0, york)} {
			time.Sleep(time.Until(day))
			s := v.Session(zksync.WithTimeout(time.Hour))
			c := zkcron.New(s, path)
			for _, spec := range []string{"30 1 * * *", "30 2 * * *", "0 3 * * *"} {
				c.At(spec, "CRON_TZ=America/New_York "+spec, b.writes(0, nil), zkcron.WithMissed(zkcron.Skip))
			}
			ctx, cancel := context.WithCancel(t.Context())
			a := starts(ctx, c)
			time.Sleep(12 * time.Hour)
			ends(v, cancel, a)
			require.NoError(t, s.Close()) // half a year of its heartbeats would take a while
		}
		var got []string
		for _, e := range b.all() {
			require.True(t, e.at.Equal(e.tick.Scheduled))
			got = append(got, e.tick.Name+" on "+e.tick.Scheduled.Format("Jan _2 15:04 -07"))
		}
		require.Equal(t, []string{
			"30 1 * * * on Apr  2 01:30 -05", "0 3 * * * on Apr  2 03:00 -04",
			"30 1 * * * on Oct 29 01:30 -04", "30 1 * * * on Oct 29 01:30 -05", "30 2 * * * on Oct 29 02:30 -05", "0 3 * * * on Oct 29 03:00 -05",
		}, got)
	}, zktest.WithVirtualLimit(400*24*time.Hour))
}

// Another program has written a time whose year is not one that a record can have in the zone of the job.
func TestARecordOfTheYearZeroIsMisuse(t *testing.T) {
	for _, scheduled := range []string{"0000-01-01T00:00:00Z", "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59Z"} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			c := zkcron.New(v.Session(), path)
			c.At(job, "CRON_TZ=America/New_York * * * * *", nothing)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, c.Run(ctx), context.DeadlineExceeded)
			v.Server.Set(jobs+"/"+job+"/record", []byte(`{"scheduled":"`+scheduled+`","started":"2000-01-01T00:00:00Z"}`))
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.ErrorIs(t, c.Run(ctx), zksync.ErrMisuse)
		})
	}
}
