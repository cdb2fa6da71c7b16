package cron_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// asks is a call of RunNow in a process that has not registered the job.
func asks(ctx context.Context, s *zksync.Session) *proving.Attempt {
	c := zkcron.New(s, path)
	return proving.Waits(ctx, func(ctx context.Context) error { return c.RunNow(ctx, job) })
}

func TestAcceptance195RunNowRunsTheJobOnceWhereverItIs(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		var b book
		first, second := daily(v.Session(), b.writes(0, nil)), daily(v.Session(), b.writes(1, nil))
		runs := []*proving.Attempt{starts(ctx, first)}
		v.Queued(queue, 1)
		runs = append(runs, starts(ctx, second))
		v.Queued(queue, 2)
		for i, caller := range []*zkcron.Cron{first, second, zkcron.New(v.Session(), path)} { // the holder, a waiter, a process without the job
			began := time.Now()
			require.NoError(t, caller.RunNow(t.Context(), job))
			all := b.all()
			require.Len(t, all, i+1)
			e := all[i]
			require.Equal(t, 0, e.node, "the process with the lease")
			require.True(t, e.tick.OutOfTurn)
			require.False(t, e.at.Before(began))
			require.Equal(t, job, e.tick.Name)
			require.Zero(t, e.tick.Missed)
			if v.Virtual {
				require.True(t, e.tick.Scheduled.Equal(e.at), "%v", e)
			}
		}
		b.grows(t, "")
		require.Zero(t, last(v, v.Session()), "no tick has run")
		st, err := first.State(t.Context())
		require.NoError(t, err)
		require.Regexp(t, `^1 job; nightly \(0 12 \* \* \*\), out of turn ran at 20`, st.Detail)
		require.Empty(t, v.Children(jobs+"/"+job+"/record"))
		ends(v, cancel, runs...)
	})
}

func TestAcceptance195CallsThatComeBeforeTheRunBeginsShareIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		var b book
		run := starts(ctx, daily(v.Session(), b.writes(0, func(context.Context, zkcron.Tick) error {
			time.Sleep(10 * time.Second)
			return errJob
		})))
		v.Queued(queue, 1)
		s := v.Session()
		began := time.Now()
		first := asks(t.Context(), s)
		time.Sleep(time.Second)
		st, err := daily(s, b.writes(1, nil)).State(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, "running", st.Entries[0].State)
		require.Equal(t, os.Getpid(), st.Entries[0].Owner.PID, "which process runs the job")
		later := []*proving.Attempt{asks(t.Context(), s), asks(t.Context(), v.Session()), asks(t.Context(), v.Session())}
		time.Sleep(time.Second)
		withdrawn, leave := context.WithCancel(t.Context())
		gone := asks(withdrawn, v.Session())
		time.Sleep(time.Second)
		leave()
		require.ErrorIs(t, v.Failed(gone), context.Canceled)
		err = v.Failed(first)
		require.ErrorIs(t, err, zkcron.ErrFailed)
		require.EqualError(t, err, "zkcron: run now /schedules/a: the run failed: the disk is full")
		v.Took(began, 10*time.Second, "the first run")
		for _, a := range later {
			require.ErrorIs(t, v.Failed(a), zkcron.ErrFailed)
		}
		v.Took(began, 20*time.Second, "the second run, which is for all that came while the first one ran")
		time.Sleep(time.Minute)
		require.Len(t, b.all(), 2)
		require.Empty(t, v.Children(jobs+"/"+job+"/record"))
		ends(v, cancel, run)
	})
}

func TestAcceptance195ARunOutOfTurnLeavesTheScheduleAsItIs(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		var b book
		s := v.Session()
		run := starts(ctx, every(s, b.writes(0, func(_ context.Context, t zkcron.Tick) error {
			switch {
			case t.OutOfTurn:
				time.Sleep(2 * time.Second) // from 2.5 to 4.5: the ticks 3 and 4 are due
				return errJob
			case t.Scheduled.Equal(second(2)):
				return context.DeadlineExceeded
			}
			return nil
		})))
		time.Sleep(time.Until(second(2)) + 500*time.Millisecond)
		call := asks(t.Context(), v.Session())
		time.Sleep(time.Second)
		r := last(v, s)
		require.Equal(t, second(2), r.Scheduled, "Last is about ticks")
		require.Equal(t, context.DeadlineExceeded.Error(), r.Err)
		require.ErrorIs(t, v.Failed(call), zkcron.ErrFailed)
		time.Sleep(time.Until(second(5)) + 100*time.Millisecond)
		var ticks []zkcron.Tick
		for _, e := range b.all() {
			if !e.tick.OutOfTurn {
				ticks = append(ticks, e.tick)
				continue
			}
			require.Equal(t, context.DeadlineExceeded.Error(), e.tick.LastErr)
			require.Equal(t, second(2).Add(500*time.Millisecond), e.tick.Scheduled.Truncate(100*time.Millisecond))
		}
		require.Len(t, ticks, 4)
		require.Equal(t, second(4), ticks[2].Scheduled)
		require.Equal(t, 1, ticks[2].Missed, "the tick of second 3, as if a tick had taken so long")
		require.Equal(t, context.DeadlineExceeded.Error(), ticks[2].LastErr)
		require.Equal(t, second(5), ticks[3].Scheduled)
		require.Empty(t, ticks[3].LastErr)
		b.grows(t, "")
		ends(v, cancel, run)
	})
}

func TestAcceptance196ARunOutOfTurnWhoseProcessDiesRunsAgainUnlessAtMostOnce(t *testing.T) {
	for _, once := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var b book
			var opts []zkcron.JobOption
			if once {
				opts = append(opts, zkcron.WithAtMostOnce())
			}
			begin := func(n int) (*zksync.Session, *proving.Attempt, context.CancelFunc) {
				s := v.Session(zksync.WithTimeout(6 * time.Second))
				c := zkcron.New(s, path)
				c.At(job, "@yearly", b.writes(n, func(context.Context, zkcron.Tick) error { time.Sleep(5 * time.Second); return nil }), opts...)
				ctx, cancel := context.WithCancel(t.Context())
				return s, starts(ctx, c), cancel
			}
			victim, dead, stop := begin(0)
			v.Queued(queue, 1)
			_, run, cancel := begin(1)
			v.Queued(queue, 2)
			call := asks(t.Context(), v.Session())
			time.Sleep(time.Second)
			v.Server.Partition(victim.ID())
			stop()
			<-dead.Done
			<-call.Done
			all := b.all()
			if once {
				require.ErrorIs(t, call.Err, zkcron.ErrFailed)
				require.ErrorContains(t, call.Err, "before the function returned")
				require.Len(t, all, 1)
			} else {
				require.NoError(t, call.Err)
				require.Len(t, all, 2)
				require.True(t, all[0].tick.Scheduled.Equal(all[1].tick.Scheduled), "it is the same run")
				require.True(t, all[1].tick.OutOfTurn)
				require.Equal(t, 1, all[1].node)
				require.Contains(t, all[1].tick.LastErr, "before the function returned")
				b.grows(t, "")
			}
			require.NoError(t, zkcron.New(v.Session(), path).RunNow(t.Context(), job), "the job can run again")
			ends(v, cancel, run)
		})
	}
}

func TestAcceptance197RunNowWaitsForAProcessAndWithdrawsItsRequest(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var b book
		s := v.Session()
		c := daily(v.Session(), b.writes(0, nil))
		require.ErrorIs(t, zkcron.New(s, path).RunNow(t.Context(), job), zksync.ErrNotFound)
		require.False(t, v.Exists(path))
		asked, leave := context.WithCancel(t.Context())
		call := proving.Waits(asked, func(ctx context.Context) error { return c.RunNow(ctx, job) }) // it has registered the job, and makes it
		record := jobs + "/" + job + "/record"
		v.Eventually(func() bool { return v.Exists(record) && len(v.Children(record)) == 1 }, "the request is there")
		st, err := c.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, "1 job; nightly (0 12 * * *), 1 request to run now", st.Detail)
		leave()
		require.ErrorIs(t, v.Failed(call), context.Canceled)
		v.Left(record, 0, "the request")
		ctx, cancel := context.WithCancel(t.Context())
		run := starts(ctx, c)
		v.Settled(queue, 1)
		require.Empty(t, b.all(), "the request was withdrawn")
		ends(v, cancel, run)
		call = asks(t.Context(), s)
		v.Eventually(func() bool { return len(v.Children(record)) == 1 }, "the request is there")
		ctx, cancel = context.WithCancel(t.Context())
		run = starts(ctx, c)
		v.Passes(call)
		require.Len(t, b.all(), 1)
		ends(v, cancel, run)
	})
}

// The session of the caller ends while the job runs, and before it runs.
func TestAcceptance196ACallOutlivesTheSessionOfItsCaller(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		var b book
		run := starts(ctx, daily(v.Session(), b.writes(0, func(context.Context, zkcron.Tick) error { time.Sleep(time.Minute); return nil })))
		v.Queued(queue, 1)
		s, other := v.Session(), v.Session()
		began := time.Now()
		running := asks(t.Context(), s)
		time.Sleep(time.Second)
		waiting := asks(t.Context(), other)
		time.Sleep(time.Second)
		v.Expire(s)
		v.Expire(other)
		v.Passes(running)
		v.Took(began, time.Minute, "the run under way was its run")
		v.Passes(waiting)
		v.Took(began, 2*time.Minute, "the run after it")
		time.Sleep(5 * time.Minute)
		require.Len(t, b.all(), 2)
		require.Empty(t, v.Children(jobs+"/"+job+"/record"))
		ends(v, cancel, run)
	})
}

func TestAcceptance197WhatRunNowCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		run := starts(ctx, daily(proving.Calm(v), func(context.Context, zkcron.Tick) error { time.Sleep(200 * time.Millisecond); return nil }))
		v.Settled(queue, 1)
		s := proving.Calm(v)
		c := zkcron.New(s, path)
		require.NoError(t, c.RunNow(t.Context(), job))
		v.Quiet()
		v.Costs(10, func() { require.NoError(t, c.RunNow(t.Context(), job)); v.Quiet() },
			"the caller's sync, its node and the removal, and the record three times; the holder's list, start, end and list")
		ends(v, cancel, run)
	})
}

// The plain model: each call that succeeds has a run that begins after the call began and ends before it returns, and nothing runs
// beside what was asked for.
func TestAcceptance196EveryFaultLeavesACallWithOneRun(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		var b book
		cs := []*zkcron.Cron{daily(v.Session(), b.writes(0, nil)), daily(v.Session(), b.writes(1, nil))}
		caller := zkcron.New(v.Session(), path)
		return func(name string) {
			var stops []context.CancelFunc
			var runs []*proving.Attempt
			for _, c := range cs {
				ctx, cancel := context.WithCancel(context.Background())
				stops, runs = append(stops, cancel), append(runs, starts(ctx, c))
			}
			time.Sleep(5 * time.Second)
			for range 2 {
				before, began := len(b.all()), time.Now()
				require.NoError(t, caller.RunNow(context.Background(), job), name)
				all := b.all()[before:]
				require.NotEmpty(t, all, name)
				require.False(t, all[0].at.Before(began), name)
				for _, e := range all[1:] {
					require.Equal(t, all[0].tick.Scheduled.UTC(), e.tick.Scheduled.UTC(), "%s: another run of the same, after a lost session", name)
				}
			}
			for i := range cs {
				stops[i]()
				<-runs[i].Done
				require.ErrorIs(t, runs[i].Err, context.Canceled, name)
			}
			v.Later()
			b.grows(t, name)
			require.Empty(t, v.Children(jobs+"/"+job+"/record"), name)
			require.Empty(t, v.Children(queue), name)
		}
	})
}

// The start of the run is held back at the server while the call gives its request up.
func TestAcceptance197ARequestThatIsWithdrawnInTimeStartsNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		ctx, cancel := context.WithCancel(t.Context())
		run := starts(ctx, daily(v.Session(), b.writes(0, nil)))
		v.Settled(queue, 1)
		start := v.Server.Intercept(zktest.On(zktest.Multi, jobs+"/"+job+"/record").Nth(1).Hold())
		asked, leave := context.WithCancel(t.Context())
		call := asks(asked, v.Session())
		time.Sleep(time.Second)
		require.Equal(t, 1, start.Held())
		leave()
		require.ErrorIs(t, v.Failed(call), context.Canceled)
		v.Left(jobs+"/"+job+"/record", 0, "the request")
		start.Release()
		time.Sleep(time.Second)
		require.Empty(t, b.all())
		require.True(t, run.Pending())
		require.NoError(t, zkcron.New(v.Session(), path).RunNow(t.Context(), job), "the process has the job as before")
		require.Len(t, b.all(), 1)
		ends(v, cancel, run)
	})
}

// The function of one job may ask for another one, and not for itself.
func TestAFunctionThatWaitsForARunOfItsOwnJobIsMisuse(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		c := zkcron.New(v.Session(), path)
		c.At("other", "@yearly", b.writes(0, nil))
		c.At(job, "@yearly", func(ctx context.Context, _ zkcron.Tick) error {
			if err := c.RunNow(ctx, "other"); err != nil {
				return err
			}
			return zkcron.New(v.Session(), path).RunNow(context.WithoutCancel(ctx), "nothing")
		})
		same := zkcron.New(v.Session(), path)
		ctx, cancel := context.WithCancel(t.Context())
		c.At("own", "@yearly", func(ctx context.Context, _ zkcron.Tick) error { return c.RunNow(ctx, "own") })
		run := starts(ctx, c)
		v.Quiet()
		require.EqualError(t, same.RunNow(t.Context(), "own"), `zkcron: run now /schedules/a: the run failed: zkcron: run now /schedules/a: `+
			`the function of the job "own" would wait for its own end; start RunNow in a goroutine with another context: misuse`)
		require.ErrorContains(t, same.RunNow(t.Context(), job), `not found: a job "nothing"`)
		require.Len(t, b.all(), 1)
		ends(v, cancel, run)
	})
	require.PanicsWithError(t, "zkcron: a Cron without a session: make it with New: misuse", func() { _ = new(zkcron.Cron).RunNow(t.Context(), "") })
}
