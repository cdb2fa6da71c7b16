package cron_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func nothing(context.Context, zkcron.Tick) error { return nil }

func berlin(t *testing.T) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	return loc
}

func TestProcessesThatDifferAboutAJobAreRefused(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		first := zkcron.New(v.Session(), path)
		first.At(job, "0  3 * * *", nothing, zkcron.In(berlin(t)))
		a := starts(ctx, first)
		v.Queued(queue, 1)
		s := v.Session()
		for name, register := range map[string]func(c *zkcron.Cron){
			`"0 4 * * *","zone":"Europe/Berlin"`: func(c *zkcron.Cron) { c.At(job, "0 4 * * *", nothing, zkcron.In(berlin(t))) },
			`"0 3 * * *","zone":"UTC"`:           func(c *zkcron.Cron) { c.At(job, "0 3 * * *", nothing) },
			"@every 24h0m0s":                     func(c *zkcron.Cron) { c.Every(job, 24*time.Hour, nothing) },
			`"missed":"skip"`: func(c *zkcron.Cron) {
				c.At(job, "0 3 * * *", nothing, zkcron.In(berlin(t)), zkcron.WithMissed(zkcron.Skip))
			},
			`"atMostOnce":true`: func(c *zkcron.Cron) { c.At(job, "CRON_TZ=Europe/Berlin 0 3 * * *", nothing, zkcron.AtMostOnce()) },
		} {
			other := zkcron.New(s, path)
			register(other)
			err := v.Failed(starts(t.Context(), other))
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, name)
			require.ErrorContains(t, err, `{"spec":"0 3 * * *","zone":"Europe/Berlin","missed":"run once"}`)
		}
		same := zkcron.New(s, path)
		same.At(job, "CRON_TZ=Europe/Berlin 0 3 * * *", nothing, zkcron.WithMissed(zkcron.RunOnce))
		others, leave := context.WithCancel(t.Context())
		b := starts(others, same)
		v.Queued(queue, 2)
		ends(v, cancel, a)
		ends(v, leave, b)
	})
}

// Both look at a job that nobody runs, and then queue. One of them is refused, whoever comes first, and soon.
func TestOfTwoThatStartAtOnceWithDifferentSchedulesOneIsRefused(t *testing.T) {
	proving.EveryRequest(t, "held", func(s *proving.Strike) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			one, two := zkcron.New(v.Session(), path), zkcron.New(v.Session(), path)
			one.Every(job, time.Hour, nothing)
			two.Every(job, time.Minute, nothing)
			v.Quiet()
			s.Falls(v.Server, func(*zktest.Request) zktest.Verdict { return zktest.Verdict{Delay: 2 * time.Second} })
			a, b := starts(ctx, one), starts(ctx, two)
			time.Sleep(10 * time.Second)
			require.NotEqual(t, a.Pending(), b.Pending(), s.Name)
			refused := a
			if a.Pending() {
				refused = b
			}
			require.ErrorIs(t, refused.Err, zksync.ErrMisuse, s.Name)
			require.Len(t, v.Children(queue), 1, s.Name)
		})
	})
}

// The job has run with its old schedule. When nobody queues any more, whoever comes gives it a new one.
func TestTheScheduleChangesWhenNobodyHasTheOldOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		s := v.Session()
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, every(s, b.writes(0, nil), zkcron.WithMissed(zkcron.RunAll)))
		time.Sleep(2500 * time.Millisecond)
		ends(v, cancel, a)
		time.Sleep(time.Minute)
		ctx, cancel = context.WithCancel(t.Context())
		c := zkcron.New(s, path)
		c.Every(job, 10*time.Second, b.writes(0, nil), zkcron.WithMissed(zkcron.RunAll))
		a = starts(ctx, c)
		v.Settled(queue, 1)
		time.Sleep(18 * time.Second)
		ends(v, cancel, a)
		require.Equal(t, seconds(1, 2, 70, 80), b.times(), "no tick of the time before the change")
		b.grows(t, "")
	})
}

func TestWrongRegistrationsAreMisuse(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for want, register := range map[string]func(c *zkcron.Cron){
			"expected exactly 5 fields":      func(c *zkcron.Cron) { c.At(job, "0 3 * *", nothing) },
			"empty spec":                     func(c *zkcron.Cron) { c.At(job, "CRON_TZ=UTC", nothing) },
			"a time that does not come":      func(c *zkcron.Cron) { c.At(job, "0 0 30 2 *", nothing) },
			"does not accept descriptors":    func(c *zkcron.Cron) { c.At(job, "@daily", nothing) },
			"unknown time zone Mars/Olympus": func(c *zkcron.Cron) { c.At(job, "CRON_TZ=Mars/Olympus 0 3 * * *", nothing) },
			"without a name":                 func(c *zkcron.Cron) { c.At(job, "TZ=Local 0 3 * * *", nothing) },
			"use time.LoadLocation":          func(c *zkcron.Cron) { c.At(job, "0 3 * * *", nothing, zkcron.In(time.Local)) },
			"two time zones":                 func(c *zkcron.Cron) { c.At(job, "TZ=UTC 0 3 * * *", nothing, zkcron.In(berlin(t))) },
			"a period of 0s":                 func(c *zkcron.Cron) { c.Every(job, 0, nothing) },
			"In goes with At":                func(c *zkcron.Cron) { c.Every(job, time.Hour, nothing, zkcron.In(time.UTC)) },
			"a nil function":                 func(c *zkcron.Cron) { c.Every(job, time.Hour, nil) },
			"without a slash":                func(c *zkcron.Cron) { c.Every("a/b", time.Hour, nothing) },
			`the name ""`:                    func(c *zkcron.Cron) { c.Every("", time.Hour, nothing) },
			`the name ".."`:                  func(c *zkcron.Cron) { c.Every("..", time.Hour, nothing) },
			`as "never"`:                     func(c *zkcron.Cron) { c.Every(job, time.Hour, nothing, zkcron.WithMissed("never")) },
			"registered twice":               func(c *zkcron.Cron) { c.Every(job, time.Hour, nothing); c.Every(job, time.Hour, nothing) },
		} {
			c := zkcron.New(s, path)
			c.Every("right", time.Hour, nothing)
			register(c)
			err := c.Run(t.Context())
			require.ErrorIs(t, err, zksync.ErrMisuse, want)
			require.ErrorContains(t, err, want)
		}
		require.ErrorIs(t, zkcron.New(s, "nowhere").Run(t.Context()), zksync.ErrMisuse)
		require.ErrorIs(t, zkcron.New(nil, path).Run(t.Context()), zksync.ErrMisuse)
		require.ErrorIs(t, zkcron.New(s, path, zksync.WithLinger(time.Second)).Run(t.Context()), zksync.ErrMisuse)
		require.ErrorIs(t, zkcron.New(s, path, zksync.WithCodec(zksync.Raw)).Run(t.Context()), zksync.ErrMisuse)
		_, err := zkcron.New(s, path).Last(t.Context(), "a/b")
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.False(t, v.Exists("/schedules"))
	})
}

// recipes_test/types has the other types, each way.
func TestAcceptance160APathOfAnotherTypeIsRefused(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for i, found := range []string{"zkmap", "zkmap.Set", "zkqueue", "zkatomic.Int64", "zkgroup", "zkdurable", "zkonce.Promise"} {
			at := fmt.Sprintf("/others/%d", i)
			v.Put(at+"/"+found, "{}")
			cron := zkcron.New(s, at)
			cron.Every(job, time.Hour, nothing)
			_, err := cron.Last(t.Context(), job)
			for _, err := range []error{err, v.Failed(starts(t.Context(), cron))} {
				require.ErrorIs(t, err, zksync.ErrMisuse)
				for _, part := range []string{at, "of a " + found, "of a zkcron"} {
					require.ErrorContains(t, err, part)
				}
			}
			require.Equal(t, []string{found}, v.Children(at))
		}
		v.Put("/strange/zkcron/nightly", `{"permits":3}`)
		strange := zkcron.New(s, "/strange")
		strange.Every(job, time.Hour, nothing)
		require.ErrorIs(t, v.Failed(starts(t.Context(), strange)), zksync.ErrMisuse)
	})
}
