package cron_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// second is the nth second of virtual time.
func second(n int) time.Time { return time.Date(2000, 1, 1, 0, 0, n, 0, time.UTC) }

func seconds(ns ...int) (all []time.Time) {
	for _, n := range ns {
		all = append(all, second(n))
	}
	return all
}

// The function takes two and a half seconds the first time. Then nobody is there for a while.
func TestTicksThatCannotBeginInTimeAreMissed(t *testing.T) {
	for _, c := range []struct {
		policy zkcron.Missed
		ticks  []time.Time
		missed []int
	}{
		{zkcron.RunOnce, seconds(1, 3, 4, 50, 51), []int{0, 1, 0, 45, 0}},
		{zkcron.Skip, seconds(1, 3, 4, 50, 51), []int{0, 1, 0, 45, 0}}, // the last one of them is not late
		{zkcron.RunAll, seconds(1, 2, 3, 4, 5, 6, 7, 8), []int{0, 0, 0, 0, 0, 0, 0, 0}},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				var b book
				f := b.writes(0, func(_ context.Context, t zkcron.Tick) error {
					if t.Scheduled.Equal(second(1)) {
						time.Sleep(2500 * time.Millisecond)
					}
					return nil
				})
				s := v.Session()
				ctx, cancel := context.WithCancel(t.Context())
				a := starts(ctx, every(s, f, zkcron.WithMissed(c.policy)))
				time.Sleep(time.Until(second(4)) + 100*time.Millisecond)
				ends(v, cancel, a)
				time.Sleep(time.Until(second(50)) + 300*time.Millisecond)
				ctx, cancel = context.WithCancel(t.Context())
				a = starts(ctx, every(s, f, zkcron.WithMissed(c.policy)))
				time.Sleep(time.Second)
				ends(v, cancel, a)
				require.Equal(t, c.ticks, b.times()[:len(c.ticks)])
				for i, want := range c.missed {
					require.Equal(t, want, b.all()[i].tick.Missed, "tick %d", i)
				}
				if c.policy == zkcron.RunAll {
					require.Len(t, b.times(), 51)
				}
			})
		})
	}
}

// More ticks than anybody could go through one by one.
func TestTheTicksOfAYearAreMissedInNoTime(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		millisecond := func() (*zksync.Session, *proving.Attempt) {
			s := v.Session()
			c := zkcron.New(s, path)
			c.Every(job, time.Millisecond, b.writes(0, func(ctx context.Context, _ zkcron.Tick) error {
				if len(b.all()) != 2 {
					<-ctx.Done()
				}
				return nil
			}))
			return s, starts(t.Context(), c)
		}
		s, a := millisecond()
		time.Sleep(5500 * time.Microsecond)
		require.NoError(t, s.Close())
		<-a.Done
		time.Sleep(365 * 24 * time.Hour)
		s, a = millisecond()
		time.Sleep(time.Second)
		require.NoError(t, s.Close())
		<-a.Done
		all := b.all()
		require.Len(t, all, 3, "the one that was interrupted again")
		require.WithinDuration(t, all[2].at, all[2].tick.Scheduled, 2*time.Millisecond)
		require.Equal(t, int(all[2].tick.Scheduled.Sub(all[1].tick.Scheduled)/time.Millisecond)-1, all[2].tick.Missed)
	}, zktest.WithVirtualLimit(400*24*time.Hour))
}

// A tick each hour; the only process is away at one.
func TestALateTickRunsUnlessItIsToBeSkipped(t *testing.T) {
	for _, policy := range []zkcron.Missed{zkcron.RunOnce, zkcron.Skip, zkcron.RunAll} {
		for _, away := range []time.Duration{time.Second, 15 * time.Second, 10 * time.Minute} {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				var b book
				c := zkcron.New(v.Session(zksync.WithTimeout(time.Minute)), path)
				c.At(job, "0 * * * *", b.writes(0, nil), zkcron.WithMissed(policy))
				ctx, cancel := context.WithCancel(t.Context())
				a := starts(ctx, c)
				v.Settled(queue, 1)
				ends(v, cancel, a)
				one := second(3600)
				time.Sleep(time.Until(one) + away)
				ctx, cancel = context.WithCancel(t.Context())
				a = starts(ctx, c)
				v.Quiet()
				if skipped := policy == zkcron.Skip && away == 10*time.Minute; skipped {
					require.Empty(t, b.times(), "%v", policy)
				} else {
					require.Equal(t, []time.Time{one}, b.times(), "%v", policy)
				}
				time.Sleep(time.Hour)
				all := b.all()
				end := all[len(all)-1]
				require.Equal(t, one.Add(time.Hour), end.tick.Scheduled)
				require.Equal(t, one.Add(time.Hour), end.at.UTC())
				require.Equal(t, 2-len(all), end.tick.Missed)
				ends(v, cancel, a)
			})
		}
	}
}

// The process is cut off in its function. Another one takes over when the session has ended.
func TestATickWhoseRunnerDiedRunsAgainUnlessAtMostOnce(t *testing.T) {
	for name, opts := range map[string][]zkcron.JobOption{
		"run once": {}, "skip": {zkcron.WithMissed(zkcron.Skip)}, "at most once": {zkcron.WithAtMostOnce()},
		"run all": {zkcron.WithMissed(zkcron.RunAll)}, "all at most once": {zkcron.WithMissed(zkcron.RunAll), zkcron.WithAtMostOnce()},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				var b book
				ctx, cancel := context.WithCancel(t.Context())
				cause := make(chan error, 1)
				hang := func(ctx context.Context, _ zkcron.Tick) error {
					<-ctx.Done()
					cause <- context.Cause(ctx)
					time.Sleep(2 * time.Second) // it is slow to notice
					return nil
				}
				dead, heir := v.Session(zksync.WithTimeout(10*time.Second)), v.Session()
				a := starts(ctx, every(dead, b.writes(0, hang), opts...))
				v.Settled(queue, 1)
				others, leave := context.WithCancel(t.Context())
				c := starts(others, every(heir, b.writes(1, nil), opts...))
				v.Settled(queue, 2)
				time.Sleep(time.Until(second(1)) + time.Millisecond)
				begun := last(v, heir)
				require.Equal(t, zkcron.Record{Scheduled: second(1), Started: second(1), Owner: begun.Owner}, begun)
				heal := v.Server.Partition(dead.ID())
				time.Sleep(20*time.Second - 500*time.Millisecond)
				heal()
				require.ErrorIs(t, <-cause, zksync.ErrLost)
				all := b.all()
				again := name != "at most once" && name != "all at most once"
				require.Equal(t, second(1), all[0].tick.Scheduled)
				require.Equal(t, 1, all[1].node)
				require.Equal(t, again, all[1].tick.Scheduled.Equal(second(1)), "%v", all[1].tick)
				require.Contains(t, all[1].tick.LastErr, "lost its lease")
				require.WithinDuration(t, second(11), all[1].at, time.Second, "as soon as the session has ended")
				require.Empty(t, all[2].tick.LastErr)
				b.grows(t, "")
				ends(v, cancel, a)
				ends(v, leave, c)
			})
		})
	}
}

// The record of a tick that is not run again tells what happened.
func TestTheRecordTellsOfATickThatDidNotComeToItsEnd(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		c := zkcron.New(v.Session(), path)
		c.At(job, "* * * * *", b.writes(0, func(ctx context.Context, _ zkcron.Tick) error { <-ctx.Done(); return ctx.Err() }), zkcron.WithAtMostOnce())
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, c)
		time.Sleep(time.Until(second(61)))
		ends(v, cancel, a)
		s := v.Session()
		require.Empty(t, last(v, s).Err, "nobody knows yet that it will not end")
		ctx, cancel = context.WithCancel(t.Context())
		a = starts(ctx, c)
		v.Quiet()
		r := last(v, s)
		require.Equal(t, second(60), r.Scheduled)
		require.Equal(t, second(60), r.Started)
		require.Zero(t, r.Ended)
		require.Contains(t, r.Err, "before the function returned")
		require.Len(t, b.all(), 1)
		ends(v, cancel, a)
	})
}

// A process is stopped in an orderly way while its function runs.
func TestATickThatTheEndOfRunInterruptsRunsAgainUnlessItSucceeds(t *testing.T) {
	for _, succeeds := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var b book
			first, second1 := v.Session(), v.Session()
			ctx, cancel := context.WithCancel(t.Context())
			a := starts(ctx, every(first, b.writes(0, func(ctx context.Context, _ zkcron.Tick) error {
				<-ctx.Done()
				if succeeds {
					return nil
				}
				return ctx.Err()
			})))
			v.Settled(queue, 1)
			others, leave := context.WithCancel(t.Context())
			c := starts(others, every(second1, b.writes(1, nil)))
			time.Sleep(time.Until(second(1)) + 100*time.Millisecond)
			ends(v, cancel, a)
			time.Sleep(200 * time.Millisecond)
			if succeeds {
				require.Equal(t, seconds(1), b.times())
				require.False(t, last(v, second1).Ended.IsZero())
			} else {
				require.Equal(t, seconds(1, 1), b.times())
				require.Contains(t, b.all()[1].tick.LastErr, "before the function returned")
			}
			ends(v, leave, c)
		})
	}
}

// The servers are away for a while just then. The tick is done, so nobody runs it again, and Run says so before it returns.
func TestATickThatIsDoneIsRecordedThoughTheContextOfRunHasEnded(t *testing.T) {
	for _, close := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var b book
			s, heir := v.Session(), v.Session()
			ctx, cancel := context.WithCancel(t.Context())
			a := starts(ctx, every(s, b.writes(0, func(ctx context.Context, _ zkcron.Tick) error {
				<-ctx.Done()
				return nil
			})))
			v.Settled(queue, 1)
			others, leave := context.WithCancel(t.Context())
			c := starts(others, every(heir, b.writes(1, nil)))
			v.Settled(queue, 2)
			time.Sleep(time.Until(second(1)) + 100*time.Millisecond)
			v.Server.Stop()
			cancel()
			time.Sleep(2 * time.Second)
			v.Server.Restart()
			require.ErrorIs(t, v.Failed(a), context.Canceled)
			if close {
				require.NoError(t, s.Close())
			}
			time.Sleep(20 * time.Second)
			ends(v, leave, c)
			again := 0
			for _, at := range b.times() {
				if at.Equal(second(1)) {
					again++
				}
			}
			require.Equal(t, 1, again, "%v", b.times())
			require.Greater(t, len(b.times()), 10)
		})
	}
}

// The context of Run ends during a tick, and its end is recorded so late that the time of the next one has come.
func TestNoTickBeginsWhenTheContextOfRunHasEnded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, every(v.Session(), b.writes(0, func(context.Context, zkcron.Tick) error {
			v.Server.Intercept(zktest.On(zktest.Multi, "**").Delay(3 * time.Second).Times(1))
			cancel()
			return nil
		})))
		require.ErrorIs(t, v.Failed(a), context.Canceled)
		require.Len(t, b.times(), 1)
		record, _ := v.Server.Node(path + "/zkcron/" + job + "/record")
		require.EqualValues(t, 3, record.Stat.Version, "one write when it took the job over, and two of the tick")
	})
}

// The context of Run ends while the start of a tick is on its way, and while its answer is. The function was not called, and the next
// process runs the tick, also if each is run at most once.
func TestATickThatHasNotBegunWhenTheContextOfRunEndsIsForTheNextProcess(t *testing.T) {
	for name, slow := range map[string]zktest.Verdict{"before": {Delay: 20 * time.Millisecond}, "after": {DelayReply: 20 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				var b book
				ctx, cancel := context.WithCancel(t.Context())
				a := starts(ctx, every(v.Session(), b.writes(0, nil), zkcron.WithAtMostOnce()))
				v.Settled(queue, 1)
				others, leave := context.WithCancel(t.Context())
				c := starts(others, every(v.Session(), b.writes(1, nil), zkcron.WithAtMostOnce()))
				v.Settled(queue, 2)
				time.Sleep(time.Until(second(1)) - 10*time.Millisecond)
				remove := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Op != zktest.Multi {
						return zktest.Verdict{}
					}
					time.AfterFunc(10*time.Millisecond, cancel)
					return slow
				})
				time.Sleep(20*time.Millisecond - time.Nanosecond)
				remove()
				require.ErrorIs(t, v.Failed(a), context.Canceled)
				time.Sleep(time.Until(second(1)) + 100*time.Millisecond)
				require.Equal(t, seconds(1), b.times())
				require.Equal(t, 1, b.all()[0].node)
				require.Empty(t, b.all()[0].tick.LastErr, "it is the first run")
				ends(v, leave, c)
			})
		})
	}
}

// All nodes of the schedule are removed at once, below a process that holds and one that waits.
func TestAScheduleThatIsRemovedIsMadeAgain(t *testing.T) {
	for _, slow := range []time.Duration{0, time.Millisecond} { // how soon the processes make something again
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var b book
			ctx, cancel := context.WithCancel(t.Context())
			a := starts(ctx, every(v.Session(), b.writes(0, nil)))
			v.Settled(queue, 1)
			c := starts(ctx, every(v.Session(), b.writes(1, nil)))
			v.Settled(queue, 2)
			time.Sleep(time.Until(second(3)) + 100*time.Millisecond)
			for _, session := range v.Server.Sessions() {
				v.Server.Delay(session.ID, slow, 0)
			}
			v.Server.DeleteAll(path)
			time.Sleep(10 * time.Second)
			require.True(t, a.Pending(), "%v", a.Err)
			require.True(t, c.Pending(), "%v", c.Err)
			ends(v, cancel, a, c)
			require.GreaterOrEqual(t, len(b.times()), 10, "%v", b.times())
			b.grows(t, "")
		})
	}
}

func TestAFunctionThatCallsGoexitHasFailed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, every(v.Session(), b.writes(0, func(context.Context, zkcron.Tick) error { runtime.Goexit(); return nil })))
		time.Sleep(time.Until(second(2)) + time.Millisecond)
		require.Contains(t, b.all()[1].tick.LastErr, "Goexit")
		ends(v, cancel, a)
	})
}

// Somebody closes the session while a function runs.
func TestCloseEndsTheFunctionAndRun(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		s := v.Session()
		cause := make(chan error, 1)
		a := starts(t.Context(), every(s, b.writes(0, func(ctx context.Context, _ zkcron.Tick) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		})))
		time.Sleep(time.Until(second(1)) + time.Millisecond)
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.Failed(a), zksync.ErrClosed)
		require.Error(t, <-cause)
		require.Empty(t, v.Children(queue))
		idle := v.Session()
		a = starts(t.Context(), zkcron.New(idle, path))
		v.Quiet()
		require.True(t, a.Pending())
		require.NoError(t, idle.Close())
		require.ErrorIs(t, v.Failed(a), zksync.ErrClosed)
	})
}

// Another program removes nodes.
func TestNodesThatAreRemovedByHandAreMadeAgain(t *testing.T) {
	for _, what := range [][]string{{"record"}, {"queue/*"}, {"queue/*", "queue"}, {"queue/*", "queue", "record", ""}, {"record="}} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var b book
			ctx, cancel := context.WithCancel(t.Context())
			a := starts(ctx, every(v.Session(), b.writes(0, nil)))
			time.Sleep(time.Until(second(3)) + 100*time.Millisecond)
			for _, session := range v.Server.Sessions() { // it makes nothing again before all that is to go has gone
				v.Server.Delay(session.ID, time.Millisecond, 0)
			}
			for _, node := range what {
				switch node {
				case "record=":
					record := jobs + "/" + job + "/record"
					v.Server.Set(record, []byte(v.Data(record)))
				case "":
					v.Remove(jobs + "/" + job)
				case "queue/*":
					v.Remove(queue + "/" + v.Children(queue)[0])
				default:
					v.Remove(jobs + "/" + job + "/" + node)
				}
			}
			time.Sleep(3 * time.Second)
			ends(v, cancel, a)
			require.GreaterOrEqual(t, len(b.times()), 5, "%v: %v", what, b.times())
			b.grows(t, fmt.Sprint(what))
		})
	}
}

func TestTheTextOfAnErrorIsKeptAsFarAsItGoes(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "an error without a text",
		"\xff\xfe":                "an error without a text",
		strings.Repeat("ä", 3000): strings.Repeat("ä", 2048),
		"a\xffb\n\"c\"":           "ab\n\"c\"",
	} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			ctx, cancel := context.WithCancel(t.Context())
			a := starts(ctx, every(s, func(context.Context, zkcron.Tick) error { return errors.New(text) }))
			time.Sleep(time.Until(second(1)) + time.Millisecond)
			require.Equal(t, want, last(v, s).Err)
			ends(v, cancel, a)
		})
	}
}

// The servers are silent: while it waits for its turn, between ticks, while the start of a tick waits for its answer, and
// while a function runs that ends with its context.
func TestRunEndsSoonAfterItsContextWhateverTheServersDo(t *testing.T) {
	for name, wait := range map[string]time.Duration{"idle": 300 * time.Millisecond, "begins": 1010 * time.Millisecond, "runs": 1200 * time.Millisecond} {
		for holder := range 2 {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				var b book
				f := b.writes(0, func(ctx context.Context, _ zkcron.Tick) error { <-ctx.Done(); return ctx.Err() })
				ctx, cancel := context.WithCancel(t.Context())
				others, leave := context.WithCancel(t.Context())
				sessions := []*zksync.Session{v.Session(), v.Session()}
				runs := []*proving.Attempt{starts(ctx, every(sessions[0], f))}
				v.Settled(queue, 1)
				runs = append(runs, starts(others, every(sessions[1], f)))
				v.Settled(queue, 2)
				var silent time.Duration // "begins" loses the answer to the start
				if name == "begins" {
					silent = 1000*time.Millisecond - time.Nanosecond
				} else {
					silent = wait
				}
				time.Sleep(silent)
				heal := v.Server.Partition(sessions[holder].ID())
				defer heal()
				time.Sleep(wait - silent)
				start := time.Now()
				stops := []context.CancelFunc{cancel, leave}
				stops[holder]()
				require.ErrorIs(t, v.Failed(runs[holder]), context.Canceled)
				v.Within(start, 100*time.Millisecond, name)
				ends(v, stops[1-holder], runs[1-holder])
			})
		}
	}
}

// A failed tick, missed ticks, and one that is given up are logged once each, with the job and the time.
func TestTicksThatFailOrAreMissedAreLogged(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, log := logged(v)
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, every(s, func(ctx context.Context, t zkcron.Tick) error {
			switch t.Scheduled {
			case second(1):
				return errJob
			case second(2):
				time.Sleep(3500 * time.Millisecond)
			case second(6):
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, zkcron.WithAtMostOnce()))
		time.Sleep(time.Until(second(6)) + 100*time.Millisecond)
		ends(v, cancel, a)
		ctx, cancel = context.WithCancel(t.Context())
		a = starts(ctx, every(s, nothing, zkcron.WithAtMostOnce()))
		v.Settled(queue, 1)
		ends(v, cancel, a)
		for _, line := range []string{
			`msg="a tick failed" job=nightly path=/schedules/a reason="scheduled for 2000-01-01T00:00:01Z" error="the disk is full"`,
			`msg="ticks were missed" job=nightly path=/schedules/a reason="2 before the one that is scheduled for 2000-01-01T00:00:05Z"`,
			`msg="a tick did not come to its end, and is not run again" job=nightly path=/schedules/a reason="scheduled for 2000-01-01T00:00:06Z"`,
		} {
			require.Equal(t, 1, strings.Count(log.String(), line), log.String())
		}
		require.Equal(t, 3, strings.Count(log.String(), "level=WARN"), log.String())
	})
}

// The schedule is removed while a process that has just got the lease is about to read the record.
func TestAScheduleThatIsRemovedDuringATakeOverIsMadeAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		v.Server.Intercept(zktest.On(zktest.GetData, jobs+"/"+job+"/record").Nth(1).Delay(time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, every(v.Session(), b.writes(0, nil)))
		v.Settled(queue, 1)
		v.Server.DeleteAll(path)
		time.Sleep(5 * time.Second)
		require.True(t, a.Pending(), "%v", a.Err)
		require.NotEmpty(t, b.times())
		ends(v, cancel, a)
	})
}

// The schedule is removed node by node: first the queue, and the rest when a process is about to make that again.
func TestAScheduleThatIsRemovedDuringAnEntryIsMadeAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, every(v.Session(), b.writes(0, nil)))
		v.Settled(queue, 1)
		v.Server.Intercept(zktest.On(zktest.Create, queue).Nth(1).Delay(time.Second))
		v.Server.DeleteAll(queue)
		time.Sleep(500 * time.Millisecond)
		v.Server.DeleteAll(path)
		time.Sleep(5 * time.Second)
		require.True(t, a.Pending(), "%v", a.Err)
		require.Contains(t, v.Data(jobs+"/"+job), "@every 1s")
		ends(v, cancel, a)
	})
}
