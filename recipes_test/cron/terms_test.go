package cron_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
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

// logged opens a session, and returns what it has logged.
func logged(v *proving.Env, opts ...zksync.SessionOption) (*zksync.Session, *proving.Log) {
	l := new(proving.Log)
	return v.Session(append(opts, l.Option())...), l
}

// Whatever differs, the process with the later schedule waits for those with the earlier one, says so once, and runs its other jobs.
func TestAJobWithAnyOtherScheduleWaitsAndTheOthersRun(t *testing.T) {
	for name, register := range map[string]func(c *zkcron.Cron, f zkcron.Func){
		`"0 4 * * *","zone":"Europe/Berlin"`: func(c *zkcron.Cron, f zkcron.Func) { c.At(job, "0 4 * * *", f, zkcron.WithLocation(berlin(t))) },
		`"0 3 * * *","zone":"UTC"`:           func(c *zkcron.Cron, f zkcron.Func) { c.At(job, "0 3 * * *", f) },
		`"zone":"UTC+01:00:00"`: func(c *zkcron.Cron, f zkcron.Func) {
			c.At(job, "0 3 * * *", f, zkcron.WithLocation(time.FixedZone("Europe/Berlin", 3600)))
		},
		"@every 4h0m0s": func(c *zkcron.Cron, f zkcron.Func) { c.Every(job, 4*time.Hour, f) },
		`"missed":"skip"`: func(c *zkcron.Cron, f zkcron.Func) {
			c.At(job, "0 3 * * *", f, zkcron.WithLocation(berlin(t)), zkcron.WithMissed(zkcron.Skip))
		},
		`"atMostOnce":true`: func(c *zkcron.Cron, f zkcron.Func) {
			c.At(job, "CRON_TZ=Europe/Berlin 0 3 * * *", f, zkcron.WithAtMostOnce())
		},
	} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ctx, cancel := context.WithCancel(t.Context())
			calm := zksync.WithTimeout(time.Minute) // hours with few heartbeats
			first := zkcron.New(v.Session(calm), path)
			first.At(job, "0  3 * * *", nothing, zkcron.WithLocation(berlin(t)))
			a := starts(ctx, first)
			v.Settled(queue, 1)
			same := zkcron.New(v.Session(calm), path)
			same.At(job, "CRON_TZ=Europe/Berlin 0 3 * * *", nothing, zkcron.WithMissed(zkcron.RunOnce))
			b := starts(ctx, same)
			v.Settled(queue, 2)
			s, log := logged(v, calm)
			var changed, often book
			other := zkcron.New(s, path)
			register(other, changed.writes(0, nil))
			other.Every("often", 10*time.Minute, often.writes(0, nil))
			others, leave := context.WithCancel(t.Context())
			c := starts(others, other)
			time.Sleep(25 * time.Minute)
			require.True(t, c.Pending(), name)
			require.Len(t, often.all(), 2, name)
			require.Len(t, v.Children(queue), 2, name)
			require.Equal(t, 1, strings.Count(log.String(), "waiting until they have stopped"), "%s: %s", name, log.String())
			for _, part := range []string{strings.ReplaceAll(name, `"`, `\"`), `{\"spec\":\"0 3 * * *\",\"zone\":\"Europe/Berlin\",\"missed\":\"run once\"}`} {
				require.Contains(t, log.String(), part)
			}
			ends(v, cancel, a, b)
			v.Settled(queue, 1)
			time.Sleep(4 * time.Hour)
			require.Len(t, changed.all(), 1, name)
			ends(v, leave, c)
		})
	}
}

// A rolling update: each process stops when its successor is ready.
func TestARollingUpdateWithAChangedSpecFinishes(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		const processes = 3
		runs, stops := map[bool][]*proving.Attempt{}, map[bool][]context.CancelFunc{}
		begin := func(changed bool) {
			c := zkcron.New(v.Session(), path)
			if c.At(job, "0 3 * * *", nothing); changed {
				c = zkcron.New(v.Session(), path)
				c.At(job, "0 4 * * *", nothing)
			}
			ctx, cancel := context.WithCancel(t.Context())
			runs[changed], stops[changed] = append(runs[changed], starts(ctx, c)), append(stops[changed], cancel)
		}
		for i := range processes {
			begin(false)
			v.Queued(queue, i+1)
		}
		for i := range processes {
			begin(true)
			v.Quiet()
			require.True(t, runs[true][i].Pending())
			ends(v, stops[false][i], runs[false][i])
		}
		v.Queued(queue, processes)
		require.Contains(t, v.Data(jobs+"/"+job), "0 4 * * *")
		for i := range processes {
			ends(v, stops[true][i], runs[true][i])
		}
	})
}

// The holder waits for a tick that is a day away. One that has come behind it waits for its turn.
func TestAGreaterRevisionIsInForceAtOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		begin := func(revision int, spec string, f zkcron.Func) (*proving.Attempt, context.CancelFunc, *proving.Log) {
			s, log := logged(v)
			c := zkcron.New(s, path)
			c.At(job, spec, f, zkcron.WithRevision(revision))
			ctx, cancel := context.WithCancel(t.Context())
			return starts(ctx, c), cancel, log
		}
		var b book
		old, stop, oldLog := begin(0, "0 12 * * *", b.writes(0, nil))
		v.Settled(queue, 1)
		behind, halt, behindLog := begin(0, "0 12 * * *", b.writes(0, nil))
		v.Settled(queue, 2)
		two, end, _ := begin(2, "* * * * *", b.writes(2, nil))
		v.Settled(queue, 1)
		time.Sleep(time.Until(second(120)) + time.Second)
		require.Equal(t, seconds(60, 120), b.times())
		require.Equal(t, 2, b.all()[0].node)
		one, leave, oneLog := begin(1, "0 13 * * *", b.writes(1, nil))
		v.Settled(queue, 1)
		for _, log := range []*proving.Log{oldLog, behindLog, oneLog} {
			require.Equal(t, 1, strings.Count(log.String(), "this process leaves the job"), log.String())
		}
		require.Contains(t, oldLog.String(), "this job has a greater revision there", "why the lease has ended")
		require.True(t, old.Pending() && behind.Pending() && one.Pending(), "Run does not end")
		ends(v, stop, old)
		ends(v, halt, behind)
		ends(v, leave, one)
		ends(v, end, two)
		require.ErrorContains(t, func() error {
			c := zkcron.New(v.Session(), path)
			c.At(job, "0 3 * * *", nothing, zkcron.WithRevision(-1))
			return c.Run(t.Context())
		}(), "revision -1")
	})
}

// The holder runs a tick. It ends it, and the record says so.
func TestATickOutlivesItsSchedule(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, every(v.Session(), b.writes(0, func(context.Context, zkcron.Tick) error {
			time.Sleep(10 * time.Second)
			return nil
		})))
		time.Sleep(time.Until(second(5)))
		c := zkcron.New(v.Session(), path)
		c.At(job, "* * * * *", b.writes(1, nil), zkcron.WithRevision(1))
		d := starts(ctx, c)
		time.Sleep(time.Until(second(12)))
		r := last(v, v.Session())
		require.Equal(t, second(1), r.Scheduled)
		require.Equal(t, second(11), r.Ended.Truncate(time.Second))
		time.Sleep(time.Until(second(61)))
		require.Equal(t, seconds(1, 60), b.times())
		require.Equal(t, 1, b.all()[1].node)
		ends(v, cancel, a, d)
	})
}

// Both look at a job that nobody runs, and then queue. One of them has its schedule, whoever comes first, and the other one waits.
func TestOfTwoThatStartAtOnceWithDifferentSchedulesOneWaits(t *testing.T) {
	proving.EveryRequest(t, "held", func(s *proving.Strike) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ctx, cancel := context.WithCancel(t.Context())
			var b book
			one, two := zkcron.New(v.Session(), path), zkcron.New(v.Session(), path)
			one.Every(job, 10*time.Minute, b.writes(60, nil))
			two.Every(job, time.Minute, b.writes(1, nil))
			v.Quiet()
			s.Falls(v.Server, func(*zktest.Request) zktest.Verdict { return zktest.Verdict{Delay: 2 * time.Second} })
			a, c := starts(ctx, one), starts(ctx, two)
			time.Sleep(10*time.Minute - 10*time.Second)
			require.True(t, a.Pending() && c.Pending(), s.Name)
			require.Len(t, v.Children(queue), 1, s.Name)
			if n := len(b.all()); n != 0 {
				require.Equal(t, 9, n, s.Name)
			}
			ends(v, cancel, a, c)
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
			"the schedule never fires":       func(c *zkcron.Cron) { c.At(job, "0 0 30 2 *", nothing) },
			"an unknown descriptor":          func(c *zkcron.Cron) { c.At(job, "@reboot", nothing) },
			"a period of 10µs":               func(c *zkcron.Cron) { c.At(job, "@every 10us", nothing) },
			"a timeout of 0s":                func(c *zkcron.Cron) { c.Every(job, time.Hour, nothing, zkcron.WithTimeout(0)) },
			"a jitter of -1s":                func(c *zkcron.Cron) { c.Every(job, time.Hour, nothing, zkcron.WithJitter(-time.Second)) },
			"are only 1m0s apart":            func(c *zkcron.Cron) { c.Every(job, time.Minute, nothing, zkcron.WithJitter(time.Hour)) },
			"are only 15m0s apart":           func(c *zkcron.Cron) { c.At(job, "0,45 * * * *", nothing, zkcron.WithJitter(16*time.Minute)) },
			"unknown time zone Mars/Olympus": func(c *zkcron.Cron) { c.At(job, "CRON_TZ=Mars/Olympus 0 3 * * *", nothing) },
			"without a name":                 func(c *zkcron.Cron) { c.At(job, "TZ=Local 0 3 * * *", nothing) },
			"use time.LoadLocation":          func(c *zkcron.Cron) { c.At(job, "0 3 * * *", nothing, zkcron.WithLocation(time.Local)) },
			"two time zones":                 func(c *zkcron.Cron) { c.At(job, "TZ=UTC 0 3 * * *", nothing, zkcron.WithLocation(berlin(t))) },
			"a period of 0s":                 func(c *zkcron.Cron) { c.Every(job, 0, nothing) },
			"WithLocation goes with At":      func(c *zkcron.Cron) { c.Every(job, time.Hour, nothing, zkcron.WithLocation(time.UTC)) },
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

// Those who wait for another schedule to be given up are not woken by each process that stops.
func TestWhoWaitsForAnotherScheduleToEndSleepsUntilTheLastHasStopped(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const processes = 3
		var runs, waits []*proving.Attempt
		var stops []context.CancelFunc
		var listings []*zktest.Interception
		begin := func(s *zksync.Session, spec string) *proving.Attempt {
			c := zkcron.New(s, path)
			c.At(job, spec, nothing)
			ctx, cancel := context.WithCancel(t.Context())
			stops = append(stops, cancel)
			return starts(ctx, c)
		}
		for i := range processes {
			runs = append(runs, begin(v.Session(), "0 3 * * *"))
			v.Settled(queue, i+1)
		}
		for range processes {
			s := v.Session()
			waits = append(waits, begin(s, "0 4 * * *"))
			v.Quiet()
			listings = append(listings, v.Server.Intercept(zktest.On(zktest.GetChildren, queue).Of(s.ID())))
		}
		for i := range processes - 1 {
			ends(v, stops[i], runs[i])
			v.Quiet()
			for _, l := range listings {
				require.Zero(t, l.Matched(), "after %d of %d have stopped", i+1, processes)
			}
		}
		ends(v, stops[processes-1], runs[processes-1])
		v.Settled(queue, processes)
		for i, a := range waits {
			require.True(t, a.Pending())
			ends(v, stops[processes+i], a)
		}
	})
}

// A job is removed, and made with another schedule before one that waited has queued again.
func TestOneThatWaitsWhileTheJobIsMadeAgainHasTheNewTermsOrChangesThem(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, every(v.Session(), nothing))
		v.Settled(queue, 1)
		b := starts(ctx, every(v.Session(), nothing))
		v.Settled(queue, 2)
		for _, session := range v.Server.Sessions() {
			v.Server.Delay(session.ID, time.Second, 0)
		}
		other := zkcron.New(v.Session(), path)
		other.Every(job, time.Hour, nothing)
		v.Server.DeleteAll(path)
		others, leave := context.WithCancel(t.Context())
		c := starts(others, other)
		time.Sleep(30 * time.Second)
		require.Contains(t, v.Data(jobs+"/"+job), "@every 1h")
		ends(v, leave, c)
		time.Sleep(30 * time.Second)
		require.Contains(t, v.Data(jobs+"/"+job), "@every 1s", "whoever runs its ticks each second has said so")
		ends(v, cancel, a, b)
	})
}

// The job is removed, and made with other terms, after a process has read its own terms and before its first entry. The version of both is 0.
func TestAJobThatIsMadeAgainBeforeTheFirstEntryIsNotRunByTheOldTerms(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		first := starts(ctx, every(v.Session(), nothing))
		v.Settled(queue, 1)
		ends(v, cancel, first)
		var again sync.Once
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi {
				again.Do(func() {
					v.Server.DeleteAll(jobs + "/" + job)
					v.Server.Load(map[string]string{jobs + "/" + job: `{"spec":"@every 1h0m0s","missed":"run once"}`, queue: "", jobs + "/" + job + "/record": ""})
				})
			}
			return zktest.Verdict{}
		})
		ctx, cancel = context.WithCancel(t.Context())
		var inForce string
		a := starts(ctx, every(v.Session(), func(context.Context, zkcron.Tick) error {
			inForce = v.Data(jobs + "/" + job)
			cancel()
			return nil
		}))
		require.ErrorIs(t, v.Failed(a), context.Canceled)
		require.Contains(t, inForce, "@every 1s")
	})
}
