package zklatch

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// latchGame has processes count and wait at the same time, and die, and lose their sessions.
type latchGame struct {
	*weather.World
	book   *latchLedger
	opts   []zksync.Option
	actors []*latchActor
}

// latchActor is a goroutine that uses a latch object, perhaps together with others.
type latchActor struct {
	l     *Latch
	place int // of its process
	c     *weather.Call
}

func TestRandomUseAndFaultsOfTheLatchAgreeWithAPlainModel(t *testing.T) {
	steps, opened := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			g := newLatchGame(weather.InRapid(t, rt), rt, rapid.IntRange(1, 4).Draw(rt, "total"), rapid.Bool().Draw(rt, "ephemeral"))
			moves := g.Moves()
			for name, f := range g.uses() {
				moves[name] = f
			}
			for name, f := range moves {
				moves[name] = func(rt *rapid.T) { f(rt); steps++ }
			}
			moves[""] = func(*rapid.T) { g.Check() }
			rt.Repeat(moves)
			g.settle(rt)
			g.end()
			opened += min(g.book.opened, 1)
		})
	})
	t.Logf("%d steps, opened %d times", steps, opened)
	weather.CameTo(t, opened)
}

func newLatchGame(t testing.TB, rt *rapid.T, total int, ephemeral bool) *latchGame {
	g := &latchGame{World: weather.New(t, rt)}
	if ephemeral {
		g.opts = append(g.opts, WithEphemeral())
	}
	g.book = newLatchLedger(g.World, total, ephemeral)
	for i := range g.Houses {
		g.furnish(i)
	}
	return g
}

// furnish gives a process two objects, one for two goroutines and one for another.
func (g *latchGame) furnish(i int) {
	for _, goroutines := range []int{2, 1} {
		l := New(g.Houses[i].S, weather.TestPath, g.book.total, g.opts...)
		for range goroutines {
			g.actors = append(g.actors, &latchActor{l: l, place: i})
		}
	}
}

func (g *latchGame) pick(t *rapid.T) *latchActor {
	var idle []*latchActor
	for _, a := range g.actors {
		if !g.Runs(a.c) {
			idle = append(idle, a)
		}
	}
	if len(idle) == 0 {
		t.Skip("all are busy")
	}
	return idle[rapid.IntRange(0, len(idle)-1).Draw(t, "actor")]
}

func (g *latchGame) uses() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"count": g.count, "count too": g.count, "count again": g.count,
		"wait": g.wait, "wait too": g.wait,
		"look": func(t *rapid.T) {
			a := g.pick(t)
			a.c = g.Start(g.Houses[a.place], "look", g.Patience(t), a.l.Count, func(c *weather.Call) {
				if g.proper(c) {
					g.Must(g.book.remained(c.N, c.Began, c.End), "%d remaining, which never were", c.N)
				}
			})
		},
		"die": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "house")
			g.Kill(t, i)
			var kept []*latchActor
			for _, a := range g.actors {
				if a.place != i {
					kept = append(kept, a)
				}
			}
			g.actors = kept
			g.furnish(i)
		},
		"settle": g.settle,
	}
}

// count is CountDown.
func (g *latchGame) count(t *rapid.T) {
	a, event := g.pick(t), newEvent()
	a.c = g.Start(g.Houses[a.place], "count", g.Patience(t), func(ctx context.Context) (int, error) {
		return 0, a.l.run(ctx, "count-down", func(ctx context.Context, e *zkconn.Epoch) error { return a.l.countDown(ctx, e, event) })
	}, func(c *weather.Call) {
		if g.proper(c) {
			g.Must(g.book.ever[event] || g.book.openBy(c.End), "an event was lost")
			g.book.done[event] = doneIn{a.l.at.Client(), weather.Session(a.l.at.Client())}
		}
	})
}

func (g *latchGame) wait(t *rapid.T) {
	a := g.pick(t)
	a.c = g.Start(g.Houses[a.place], "wait", g.Patience(t), weather.NoNumber(a.l.Wait), func(c *weather.Call) {
		if g.proper(c) {
			g.Must(g.book.openBy(c.End), "it went through a closed latch")
		}
	})
}

// proper reports whether a call succeeded; if not, its context must have ended. mu is held.
func (g *latchGame) proper(c *weather.Call) bool {
	if c.In.Dead.Load() || c.Err != nil && c.Ctx.Err() != nil && errors.Is(c.Err, context.Cause(c.Ctx)) {
		return false
	}
	g.Must(c.Err == nil, "%s: an error out of place: %v", c.What, c.Err)
	return c.Err == nil
}

// settle waits until all is quiet. Then who waits does so at a closed latch, with too few events.
func (g *latchGame) settle(*rapid.T) {
	g.Calm()
	pending := g.Pending()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	x := g.book
	for _, c := range pending {
		require.Equal(g.T, "wait", c.What, "it has nobody to wait for\n%s", weather.Lazy(g.Story))
		require.Zero(g.T, x.opened, "it waits at an open latch\n%s", weather.Lazy(g.Story))
		require.Less(g.T, len(x.there), g.book.total, "it waits though all have been counted\n%s", weather.Lazy(g.Story))
	}
	for name, by := range g.book.done {
		_, there := x.there[name]
		gone := x.opened > 0 || x.ephemeral && weather.Session(by.client) != by.session
		require.True(g.T, there || gone, "%s was counted and is gone\n%s", name, weather.Lazy(g.Story))
	}
	if !g.book.ephemeral {
		return
	}
	alive := map[int64]bool{}
	for _, h := range g.Houses {
		alive[h.S.ID()] = true
	}
	for name, owner := range x.there {
		require.True(g.T, alive[owner] || x.opened > 0, "%s is of a session that is over\n%s", name, weather.Lazy(g.Story))
	}
}

func (g *latchGame) end() {
	g.Home()
	l := New(g.Houses[0].S, weather.TestPath, g.book.total, g.opts...)
	for range g.book.total {
		n, err := l.Count(context.Background())
		require.NoError(g.T, err)
		if n == 0 {
			break
		}
		require.NoError(g.T, l.CountDown(context.Background()))
		less, err := l.Count(context.Background())
		require.NoError(g.T, err)
		require.Equal(g.T, n-1, less)
	}
	require.NoError(g.T, l.Wait(context.Background()))
	g.Check()
}
