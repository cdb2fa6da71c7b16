package cron_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Three nodes, and a tick each second for 100 seconds. A node is cut off for good while its function runs or between
// ticks, and another one is started in its place. The ticks of the time until the next one holds the lease are run late.
func TestAcceptance154EachTickRunsOnceThroughKills(t *testing.T) {
	for seed := range uint64(proving.Rounds(20)) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			draw := rand.New(rand.NewPCG(seed, 154))
			why := fmt.Sprintf("seed %d", seed)
			var b book
			type node struct {
				s      *zksync.Session
				run    *proving.Attempt
				cancel context.CancelFunc
			}
			var nodes []node
			begin := func() {
				n := len(nodes)
				s := v.Session(zksync.WithTimeout(6 * time.Second))
				ctx, cancel := context.WithCancel(t.Context())
				nodes = append(nodes, node{s, starts(ctx, every(s, b.writes(n, func(context.Context, zkcron.Tick) error {
					time.Sleep(300 * time.Millisecond)
					return nil
				}), zkcron.WithMissed(zkcron.RunAll))), cancel})
				v.Queued(queue, min(n+1, 3))
			}
			for range 3 {
				begin()
			}
			killed := map[time.Time]bool{} // ticks whose runner was cut off before their end
			for range 4 {
				time.Sleep(10*time.Second + time.Duration(draw.IntN(5000))*time.Millisecond)
				all := b.all()
				end := all[len(all)-1]
				if rec := last(v, nodes[len(nodes)-1].s); rec.Ended.IsZero() {
					killed[rec.Scheduled] = true
				}
				victim := nodes[end.node]
				v.Server.Partition(victim.s.ID())
				victim.cancel()    // or it comes back in another session
				v.Queued(queue, 2) // the node of its lease ends with its session
				begin()
			}
			time.Sleep(time.Until(second(100)) + 500*time.Millisecond)
			for _, n := range nodes {
				n.cancel()
				<-n.run.Done
			}
			b.grows(t, why)
			ran := map[time.Time]int{}
			for _, at := range b.times() {
				ran[at]++
			}
			require.Len(t, ran, 100, why)
			for i := range 100 {
				want := 1
				if killed[second(i+1)] {
					want = 2
				}
				require.Equal(t, want, ran[second(i+1)], "%s: tick %d", why, i+1)
			}
		})
	}
}

// On real servers for some seconds, with Run cancelled in place of a kill.
func TestAcceptance154EachTickRunsOnceWhileNodesComeAndGo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var b book
		begin := func(n int) (*proving.Attempt, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			return starts(ctx, every(v.Session(), b.writes(n, nil), zkcron.WithMissed(zkcron.RunAll))), cancel
		}
		for n := range 4 {
			first, cancel := begin(2 * n)
			second, leave := begin(2*n + 1)
			<-time.After(1500 * time.Millisecond)
			ends(v, cancel, first)
			<-time.After(1500 * time.Millisecond)
			ends(v, leave, second)
		}
		b.grows(t, "")
		times := b.times()
		require.GreaterOrEqual(t, len(times), 8)
		for i := range times {
			require.Equal(t, times[0].Add(time.Duration(i)*time.Second), times[i], "each tick once, and none left out")
		}
	})
}

// The plain model: ticks run in order, each once, and those that ran have a record. One of three sessions has trouble.
func TestAcceptance141EveryFaultLeavesEachTickRunOnce(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		var b book
		var cs []*zkcron.Cron
		for i := range 3 {
			cs = append(cs, every(v.Session(), b.writes(i, nil), zkcron.WithMissed(zkcron.RunAll)))
		}
		return func(name string) {
			var stops []context.CancelFunc
			var runs []*proving.Attempt
			for _, c := range cs {
				ctx, cancel := context.WithCancel(context.Background())
				stops, runs = append(stops, cancel), append(runs, starts(ctx, c))
			}
			time.Sleep(time.Until(second(3)) + 500*time.Millisecond)
			// A lost answer may have cost the session of the one that held.
			for i := range cs {
				stops[i]()
				<-runs[i].Done
				time.Sleep(2 * time.Second)
				require.ErrorIs(t, runs[i].Err, context.Canceled, name)
			}
			v.Later()
			b.grows(t, name)
			times := b.times()
			require.GreaterOrEqual(t, len(times), 3, name)
			for i, at := range times {
				require.Equal(t, second(i+1), at, "%s: %v", name, times)
			}
			r, err := cs[0].Last(context.Background(), job)
			require.NoError(t, err, name)
			require.Equal(t, times[len(times)-1], r.Scheduled, name)
			require.False(t, r.Ended.IsZero(), name)
			require.Empty(t, v.Children(queue), name)
		}
	})
}

// Whatever happens to a request, or to whoever made it: a tick that ran twice was begun and not ended the first time,
// and with AtMostOnce there is none.
func TestAcceptance141EveryBlowRunsATickTwiceOnlyWithReason(t *testing.T) {
	for _, b := range proving.Blows() {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/once=%t", b.Name, once), func(t *testing.T) {
				b.EveryRequest(t, 20, func(v *proving.Env, nth int) bool { return struck(v, b, nth, once) })
			})
		}
	}
}

func struck(v *proving.Env, blow proving.Blow, nth int, once bool) bool {
	t := v.T
	t.Helper()
	story := fmt.Sprintf("%s at request %d, at most once: %t", blow.Name, nth, once)
	opts := []zkcron.JobOption{zkcron.WithMissed(zkcron.RunAll)}
	if once {
		opts = append(opts, zkcron.WithAtMostOnce())
	}
	var b book
	stops := map[int64]context.CancelFunc{}
	var runs []*proving.Attempt
	var cs []*zkcron.Cron
	var ctxs []context.Context
	for i := range 3 {
		s := v.Session()
		ctx, cancel := context.WithCancel(context.Background())
		stops[s.ID()] = cancel
		defer cancel()
		cs, ctxs = append(cs, every(s, b.writes(i, nil), opts...)), append(ctxs, ctx)
	}
	v.Quiet()
	hit := v.Meets(blow, nth, func(id int64) {
		if cancel := stops[id]; cancel != nil {
			cancel()
		}
	})
	for i, c := range cs {
		runs = append(runs, starts(ctxs[i], c))
	}
	time.Sleep(time.Until(second(4)) + 500*time.Millisecond)
	struck := hit()
	time.Sleep(20 * time.Second)
	for _, stop := range stops {
		stop()
	}
	for _, r := range runs {
		require.ErrorIs(t, v.Failed(r), context.Canceled, story)
	}
	v.PassAWhile()
	b.grows(t, story)
	times := b.times()
	ran := map[time.Time]int{}
	for i, at := range times {
		if ran[at]++; ran[at] == 2 {
			require.False(t, once, story)
			require.Contains(t, b.all()[i].tick.LastErr, "before the function returned", story)
		}
		require.LessOrEqual(t, ran[at], 2, story)
	}
	first, end := times[0], times[len(times)-1]
	require.True(t, first.Equal(second(1)) || once && first.Equal(second(2)), "%s: %v", story, times)
	left := 0
	for at := first; !at.After(end); at = at.Add(time.Second) {
		if ran[at] == 0 {
			left++
		}
	}
	if once {
		require.LessOrEqual(t, left, 1, "%s: %v", story, times)
	} else {
		require.Zero(t, left, "%s: %v", story, times)
	}
	require.Empty(t, v.Children(queue), story)
	return struck
}

// The start of a tick lies in the queue of a server while its session goes to another one, which is sent it again. The
// copy is let go when the tick has ended.
func TestAcceptance141ARequestThatLingersDoesNotTakeTheRecordBack(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0)
		var b book
		c := zkcron.New(s, path)
		c.At(job, "* * * * *", b.writes(0, nil))
		run := proving.Waits(t.Context(), c.Run)
		time.Sleep(10 * time.Second)
		late := e.Intercept(zktest.On(zktest.Multi, jobs+"/"+job+"/record").Nth(1).Hold().Queued())
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)) + time.Second)
		require.Equal(t, 1, late.Held())
		require.Empty(t, b.all())
		e.Disconnect(s.ID())
		time.Sleep(time.Second)
		require.Len(t, b.all(), 1)
		before, err := c.Last(t.Context(), job)
		require.NoError(t, err)
		require.False(t, before.Ended.IsZero())
		proving.ComesBack(t, e, s) // the server refuses what it has of a session that is at another one
		late.Release()
		time.Sleep(time.Second)
		after, err := c.Last(t.Context(), job)
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.True(t, run.Pending())
		require.NoError(t, s.Close())
		<-run.Done
		require.Len(t, b.all(), 1)
	})
}
