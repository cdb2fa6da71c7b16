package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// everyTrouble has something happen to the session that makes a request, just before or just after the servers have
// applied that, for each request that the sessions make after f's preparation. With calm nothing happens any more.
func everyTrouble(t *testing.T, what string, happen func(v *env, session int64), f func(t *testing.T, v *env) (run func(name string, calm func()))) {
	t.Helper()
	for _, after := range []bool{false, true} {
		name := fmt.Sprintf("%s, applied %v", what, after)
		proving.EveryRequest(t, name, func(s *proving.Strike) {
			inProcess(t, func(t *testing.T, v *env) {
				run := f(t, v)
				v.quiet()
				calm := s.Falls(v.srv, func(q *zktest.Request) zktest.Verdict { return v.trouble(q.Session, after, happen) })
				run(s.Name, calm)
			})
		})
	}
}

// trouble has something happen to a session at one of its requests.
func (v *env) trouble(session int64, after bool, happen func(v *env, session int64)) zktest.Verdict {
	if !after {
		happen(v, session)
		return zktest.Verdict{}
	}
	go func() {
		<-time.After(time.Nanosecond) // when the server has done what it can do at once
		happen(v, session)
	}()
	return zktest.Verdict{Fate: zktest.LoseReply}
}

func disconnects(v *env, session int64) { v.srv.Disconnect(session) }
func expires(v *env, session int64)     { v.srv.Expire(session) }

// usable checks that the group begins and ends another round without anybody dead.
func usable(ctx context.Context, t *testing.T, v *env, name string, gs ...*zkwaitgroup.WaitGroup) {
	t.Helper()
	for _, g := range gs {
		require.NoError(t, g.AddContext(ctx, 1), name)
	}
	v.remaining(gs[0], len(gs))
	for _, g := range gs {
		require.NoError(t, g.DoneContext(ctx), name)
	}
	require.NoError(t, gs[0].WaitContext(ctx), name)
	v.later()
	for _, child := range v.srv.Children(groupPath) {
		require.Equal(t, "dead", child, name)
	}
}

// A round of three: one who adds and is done, one who adds twice, one who is done for another.
func aRound(t *testing.T, v *env) func(name string) {
	gs := v.groups(3)
	return func(name string) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		require.NoError(t, gs[0].AddContext(ctx, 1), name)
		w := waits(ctx, gs[2].WaitContext)
		require.NoError(t, gs[1].AddContext(ctx, 2), name)
		v.later()
		require.True(t, w.pending(), name)
		v.remaining(gs[2], 3)
		var all sync.WaitGroup
		for _, g := range gs {
			all.Go(func() { require.NoError(t, g.DoneContext(ctx), name) })
		}
		all.Wait()
		v.awaits(w.done, "the wait to end")
		require.NoError(t, w.err, name)
		usable(ctx, t, v, name, gs...)
	}
}

func TestEveryFaultLeavesTheWaitGroupSound(t *testing.T) {
	everyFault(t, aRound)
}

func TestEveryDisconnectLeavesTheWaitGroupSound(t *testing.T) {
	everyTrouble(t, "disconnect", disconnects, func(t *testing.T, v *env) func(string, func()) {
		run := aRound(t, v)
		return func(name string, _ func()) { run(name) }
	})
}

// Whoever's session ends has died, or has not, or has added himself to the next session. But
// nobody waits for ever, nobody who did nothing wrong is accused of misuse, and the next round
// is sound.
func TestEveryExpiryLeavesTheWaitGroupSound(t *testing.T) {
	everyTrouble(t, "expire", expires, func(t *testing.T, v *env) func(string, func()) {
		gs := v.groups(3)
		return func(name string, calm func()) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			require.NoError(t, gs[0].AddContext(ctx, 1), name)
			w := waits(ctx, gs[2].WaitContext)
			require.NoError(t, gs[1].AddContext(ctx, 2), name)
			var all sync.WaitGroup
			for _, g := range []*zkwaitgroup.WaitGroup{gs[0], gs[1], gs[1]} {
				all.Go(func() { require.NoError(t, g.DoneContext(ctx), name) })
			}
			all.Wait()
			v.awaits(w.done, "the wait to end")
			var dead *zkwaitgroup.DeadMembersError
			require.True(t, w.err == nil || errors.As(w.err, &dead), "%s: %v", name, w.err)
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
			inProcess(t, func(t *testing.T, v *env) {
				gs := v.groups(3)
				name := s.Name
				v.quiet()
				ctx, cancel := v.cancelledAt(s, fate)
				defer cancel()
				want := 0
				add := func(g *zkwaitgroup.WaitGroup, n int) {
					if g.AddContext(ctx, n) == nil {
						want += n
					}
				}
				w := waits(ctx, gs[2].WaitContext) // at whose requests it is cancelled as well
				add(gs[0], 1)
				add(gs[1], 2)
				v.later()
				v.remaining(gs[2], want)
				if want == 3 {
					_ = gs[0].DoneContext(ctx)
					_ = gs[2].DoneContext(ctx)
					v.later()
					v.remaining(gs[2], 1)
					_ = gs[1].DoneContext(ctx)
				} else {
					gs[2].Add(-want)
				}
				v.later()
				cancel()
				v.awaits(w.done, "the wait to end")
				require.NoError(t, gs[2].WaitContext(context.Background()), name)
				usable(context.Background(), t, v, name, gs...)
			})
		})
	}
}

// cancelledAt returns a context that ends when a request is struck. That is held for a second.
func (v *env) cancelledAt(s *proving.Strike, fate zktest.Fate) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	s.Falls(v.srv, func(*zktest.Request) zktest.Verdict {
		cancel()
		return zktest.Verdict{Fate: fate, Delay: time.Second}
	})
	return ctx, cancel
}

func TestWhatAWaitGroupCosts(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		first, second, waiter := zkwaitgroup.New(calm(v), groupPath), zkwaitgroup.New(calm(v), groupPath), zkwaitgroup.New(calm(v), groupPath)
		v.put(groupPath, "")
		v.costs(3, func() { first.Add(1) }, "the first of a round: one is refused; and a watch")
		v.costs(2, func() { second.Add(5) }, "the first of a process: and a watch")
		v.costs(1, func() { first.Add(1) })
		v.costs(1, func() { first.Add(-2) })
		v.costs(2, func() { first.Add(1) })
		for range 4 {
			v.costsAtMost(1+3, second.Done, "the wait may look for another sentinel")
		}
		var waits sync.WaitGroup
		v.costs(3, func() { waits.Go(func() { _ = waiter.WaitContext(context.Background()) }) }, "sync, list, and one request for two watches")
		v.costsAtMost(1+3, second.Done, "the wait may look for another sentinel")
		v.costsAtMost(3+3, func() { first.Done(); waits.Wait() }, "done, the end, who died; and perhaps another sentinel")
		v.costs(3, waiter.Wait, "sync, list, who died")
		v.costs(3, func() { _, _ = waiter.Count(context.Background()) })
	})
}

// Calls that come while a request is under way share the next one.
func TestManyGoroutinesOfAProcessShareTheRequestsOfAWaitGroup(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := calm(v)
		g := zkwaitgroup.New(s, groupPath)
		g.Add(1)
		v.quiet() // its watch is not one of the requests that are counted
		v.srv.Delay(s.ID(), 10*time.Millisecond, 10*time.Millisecond)
		const many = 100
		v.costsAtMost(2, func() {
			var all sync.WaitGroup
			for range many {
				all.Go(func() { g.Add(1) })
			}
			all.Wait()
		})
		v.remaining(g, many+1)
		v.costsAtMost(2, func() {
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
	inProcess(t, func(t *testing.T, v *env) {
		const many, waiters = 60, 5
		var gs []*zkwaitgroup.WaitGroup
		for range many {
			g := zkwaitgroup.New(calm(v), groupPath)
			g.Add(1)
			gs = append(gs, g)
		}
		var all sync.WaitGroup
		for range waiters {
			g := zkwaitgroup.New(calm(v), groupPath)
			all.Go(g.Wait)
		}
		v.quiet()
		require.LessOrEqual(t, v.srv.Watches(), many+2*waiters)
		n := v.counted(func() {
			for _, g := range gs {
				g.Done()
			}
			all.Wait()
		})
		require.LessOrEqual(t, n, many+1+waiters*(1+3), "a Done each, the end, and a waiter's few")
		v.quiet()
		require.Zero(t, v.srv.Watches())
	})
}

func TestTheWaitsOfAWaitGroupLeaveNothing(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		g, waiter := zkwaitgroup.New(calm(v), groupPath), zkwaitgroup.New(calm(v), groupPath)
		watches := v.watches()
		g.Add(1)
		v.quiet()
		goroutines, _ := v.goroutines()
		for range 200 {
			ctx, cancel := context.WithCancel(context.Background())
			w := waits(ctx, waiter.WaitContext)
			cancel()
			require.ErrorIs(t, v.failed(w), context.Canceled)
			ctx, cancel = context.WithCancel(context.Background())
			added := waits(ctx, func(ctx context.Context) error { return waiter.AddContext(ctx, 1) })
			cancel()
			<-added.done
			if added.err == nil {
				waiter.Done()
			}
		}
		v.quiet()
		v.goroutinesBack(goroutines)
		require.LessOrEqual(t, v.watches(), watches+3)
		v.remaining(waiter, 1)
		g.Done()
		v.quiet()
		require.LessOrEqual(t, v.watches(), watches)
		v.nothingLeft(groupPath)
	})
}

// What other people put where our nodes are must not hurt.
func TestStrangeNodesDoNotStopAWaitGroup(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		gs := v.groups(2)
		gs[0].Add(1)
		v.put(groupPath+"/round/members/strange", "\x00\xff not ours")
		v.put(groupPath+"/round/members/evil", `{"n":-3,"taken":{"x":-9000000000000000000},"host":"a\u001b[2Jb\u202e","name":"`+string(make([]byte, 10))+`"}`)
		v.put(groupPath+"/dead", `{"rounds":[{"dead":[{"n":"x"}]}]}`)
		gs[1].Done()
		err := gs[0].WaitContext(context.Background())
		if err != nil {
			require.ErrorIs(t, err, zksync.ErrBroken)
			require.NotContains(t, err.Error(), "\x1b")
		}
		v.nothingLeft(groupPath, "dead")
	})
}
