package waitgroup_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// usable checks that the group begins and ends another round without anybody dead.
func usable(ctx context.Context, t *testing.T, v *proving.Env, name string, gs ...*zkwaitgroup.WaitGroup) {
	t.Helper()
	for _, g := range gs {
		require.NoError(t, g.AddContext(ctx, 1), name)
	}
	v.Remaining(gs[0], len(gs))
	for _, g := range gs {
		require.NoError(t, g.DoneContext(ctx), name)
	}
	require.NoError(t, gs[0].WaitContext(ctx), name)
	v.Later()
	for _, child := range v.Server.Children(proving.GroupPath) {
		require.Equal(t, "dead", child, name)
	}
}

// A round of three: one who adds and is done, one who adds twice, one who is done for another.
func aRound(t *testing.T, v *proving.Env) func(name string) {
	gs := groups(v, 3)
	return func(name string) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		require.NoError(t, gs[0].AddContext(ctx, 1), name)
		w := proving.Waits(ctx, gs[2].WaitContext)
		require.NoError(t, gs[1].AddContext(ctx, 2), name)
		v.Later()
		require.True(t, w.Pending(), name)
		v.Remaining(gs[2], 3)
		var all sync.WaitGroup
		for _, g := range gs {
			all.Go(func() { require.NoError(t, g.DoneContext(ctx), name) })
		}
		all.Wait()
		v.Awaits(w.Done, "the wait to end")
		require.NoError(t, w.Err, name)
		usable(ctx, t, v, name, gs...)
	}
}

func TestEveryFaultLeavesTheWaitGroupSound(t *testing.T) {
	proving.EveryFault(t, aRound)
}

func TestEveryDisconnectLeavesTheWaitGroupSound(t *testing.T) {
	proving.EveryTrouble(t, "disconnect", proving.Disconnects, func(t *testing.T, v *proving.Env) func(string, func()) {
		run := aRound(t, v)
		return func(name string, _ func()) { run(name) }
	})
}

// Whoever's session ends has died, or has not, or has added himself to the next session. But
// nobody waits for ever, nobody who did nothing wrong is accused of misuse, and the next round
// is sound.
func TestEveryExpiryLeavesTheWaitGroupSound(t *testing.T) {
	proving.EveryTrouble(t, "expire", proving.Expires, func(t *testing.T, v *proving.Env) func(string, func()) {
		gs := groups(v, 3)
		return func(name string, calm func()) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			require.NoError(t, gs[0].AddContext(ctx, 1), name)
			w := proving.Waits(ctx, gs[2].WaitContext)
			require.NoError(t, gs[1].AddContext(ctx, 2), name)
			var all sync.WaitGroup
			for _, g := range []*zkwaitgroup.WaitGroup{gs[0], gs[1], gs[1]} {
				all.Go(func() { require.NoError(t, g.DoneContext(ctx), name) })
			}
			all.Wait()
			v.Awaits(w.Done, "the wait to end")
			var dead *zkwaitgroup.DeadMembersError
			require.True(t, w.Err == nil || errors.As(w.Err, &dead), "%s: %v", name, w.Err)
			err := gs[0].WaitContext(ctx)
			require.True(t, err == nil || errors.As(err, &dead), "%s: %v", name, err)
			calm()
			usable(ctx, t, v, name, gs...)
		}
	})
}

// A call that is cancelled at any of its requests is over at once. An Add has added nobody, a
// Done is said nevertheless.
func TestEveryCancellationLeavesTheWaitGroupSound(t *testing.T) {
	for name, fate := range map[string]zktest.Fate{"answered": zktest.Continue, "request lost": zktest.LoseRequest, "reply lost": zktest.LoseReply} {
		proving.EveryRequest(t, "cancelled, "+name, func(s *proving.Strike) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				gs := groups(v, 3)
				name := s.Name
				v.Quiet()
				ctx, cancel := v.CancelledAt(s, fate)
				defer cancel()
				want := 0
				add := func(g *zkwaitgroup.WaitGroup, n int) {
					if g.AddContext(ctx, n) == nil {
						want += n
					}
				}
				w := proving.Waits(ctx, gs[2].WaitContext) // at whose requests it is cancelled as well
				add(gs[0], 1)
				add(gs[1], 2)
				v.Later()
				v.Remaining(gs[2], want)
				if want == 3 {
					_ = gs[0].DoneContext(ctx)
					_ = gs[2].DoneContext(ctx)
					v.Later()
					v.Remaining(gs[2], 1)
					_ = gs[1].DoneContext(ctx)
				} else {
					gs[2].Add(-want)
				}
				v.Later()
				cancel()
				v.Awaits(w.Done, "the wait to end")
				require.NoError(t, gs[2].WaitContext(context.Background()), name)
				usable(context.Background(), t, v, name, gs...)
			})
		})
	}
}

func TestWhatAWaitGroupCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		first, second, waiter := zkwaitgroup.New(proving.Calm(v), proving.GroupPath), zkwaitgroup.New(proving.Calm(v), proving.GroupPath), zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
		v.Put(proving.GroupPath, "")
		v.Costs(4, func() { first.Add(1) }, "the first look at the path; the first of a round: one is refused; and a watch")
		v.Costs(3, func() { second.Add(5) }, "the first look at the path; the first of a process: and a watch")
		v.Costs(1, func() { first.Add(1) })
		v.Costs(1, func() { first.Add(-2) })
		v.Costs(2, func() { first.Add(1) })
		for range 4 {
			v.CostsAtMost(1+3, second.Done, "the wait may look for another sentinel")
		}
		var waits sync.WaitGroup
		v.Costs(4, func() { waits.Go(func() { _ = waiter.WaitContext(context.Background()) }) }, "the first look at the path, sync, list, and one request for two watches")
		v.CostsAtMost(1+3, second.Done, "the wait may look for another sentinel")
		ends := 3 + 3 // done, the end, who died; and perhaps another sentinel
		if !v.Virtual {
			// The wait looks 10 ms after the last member left. If a busy server takes longer for the end, the wait ends the round, too, and
			// is refused: two requests for the look, five for the end, and three for the next try.
			ends += 2 + 5 + 3
		}
		v.CostsAtMost(ends, func() { first.Done(); waits.Wait() }, "done, the end, who died")
		v.Costs(3, waiter.Wait, "sync, list, who died")
		v.Costs(3, func() { _, _ = waiter.Count(context.Background()) })
	})
}

// Calls that come while a request is under way share the next one.
func TestManyGoroutinesOfAProcessShareTheRequestsOfAWaitGroup(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := proving.Calm(v)
		g := zkwaitgroup.New(s, proving.GroupPath)
		g.Add(1)
		v.Quiet() // its watch is not one of the requests that are counted
		v.Server.Delay(s.ID(), 10*time.Millisecond, 10*time.Millisecond)
		const many = 100
		v.CostsAtMost(2, func() {
			var all sync.WaitGroup
			for range many {
				all.Go(func() { g.Add(1) })
			}
			all.Wait()
		})
		v.Remaining(g, many+1)
		v.CostsAtMost(2, func() {
			var all sync.WaitGroup
			for range many {
				all.Go(g.Done)
			}
			all.Wait()
		})
		g.Done()
	})
}

// However many leave, and in whatever order, a waiter hears of few of them.
func TestAWaitIsWokenByFewOfManyMembers(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const many, waiters = 60, 5
		var gs []*zkwaitgroup.WaitGroup
		for range many {
			g := zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
			g.Add(1)
			gs = append(gs, g)
		}
		var all sync.WaitGroup
		for range waiters {
			g := zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
			all.Go(g.Wait)
		}
		v.Quiet()
		require.LessOrEqual(t, v.Server.Watches(), many+2*waiters)
		n := v.Counted(func() {
			for _, g := range gs {
				g.Done()
			}
			all.Wait()
		})
		require.LessOrEqual(t, n, many+1+waiters*(1+3), "a Done each, the end, and a waiter's few")
		v.Quiet()
		require.Zero(t, v.Server.Watches())
	})
}

func TestTheWaitsOfAWaitGroupLeaveNothing(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		g, waiter := zkwaitgroup.New(proving.Calm(v), proving.GroupPath), zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
		watches := v.Watches()
		g.Add(1)
		goroutines := v.Goroutines()
		for range 200 {
			ctx, cancel := context.WithCancel(context.Background())
			w := proving.Waits(ctx, waiter.WaitContext)
			cancel()
			require.ErrorIs(t, v.Failed(w), context.Canceled)
			ctx, cancel = context.WithCancel(context.Background())
			added := proving.Waits(ctx, func(ctx context.Context) error { return waiter.AddContext(ctx, 1) })
			cancel()
			<-added.Done
			if added.Err == nil {
				waiter.Done()
			}
		}
		v.Quiet()
		v.GoroutinesBack(goroutines)
		require.LessOrEqual(t, v.Watches(), watches+3)
		v.Remaining(waiter, 1)
		g.Done()
		v.Quiet()
		require.LessOrEqual(t, v.Watches(), watches)
		v.NothingLeft(proving.GroupPath)
	})
}

// What other people put where our nodes are must not hurt.
func TestStrangeNodesDoNotStopAWaitGroup(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 2)
		gs[0].Add(1)
		v.Put(proving.GroupPath+"/round/members/strange", "\x00\xff not ours")
		v.Put(proving.GroupPath+"/round/members/evil", `{"n":-3,"taken":{"x":-9000000000000000000},"host":"a\u001b[2Jb\u202e","name":"`+string(make([]byte, 10))+`"}`)
		v.Put(proving.GroupPath+"/dead", `{"rounds":[{"dead":[{"n":"x"}]}]}`)
		gs[1].Done()
		err := gs[0].WaitContext(context.Background())
		if err != nil {
			require.ErrorIs(t, err, zksync.ErrBroken)
			require.NotContains(t, err.Error(), "\x1b")
		}
		v.NothingLeft(proving.GroupPath, "dead")
	})
}
