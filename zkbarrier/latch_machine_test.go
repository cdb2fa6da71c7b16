package zkbarrier

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// latchGame has processes count, wait and reset at the same time, and die, and lose their sessions.
type latchGame struct {
	*weather
	book   *latchLedger
	opts   []LatchOption
	actors []*latchActor
}

// latchActor is a goroutine that uses a latch object, perhaps together with others.
type latchActor struct {
	l     *Latch
	place int // of its process
	c     *errand
}

func TestRandomUseAndFaultsOfTheLatchAgreeWithAPlainModel(t *testing.T) {
	steps, opened, resets := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			g := newLatchGame(inRapid{t, rt}, rt, rapid.IntRange(1, 4).Draw(rt, "total"), rapid.Bool().Draw(rt, "ephemeral"))
			moves := g.moves()
			for name, f := range g.uses() {
				moves[name] = f
			}
			for name, f := range moves {
				moves[name] = func(rt *rapid.T) { f(rt); steps++ }
			}
			moves[""] = func(*rapid.T) { g.check() }
			rt.Repeat(moves)
			g.settle(rt)
			g.end()
			resets += len(g.book.terms) - 1
			for _, x := range g.book.terms {
				if x.opened > 0 {
					opened++
				}
			}
		})
	})
	t.Logf("%d steps, opened %d times, reset %d times", steps, opened, resets)
	cameTo(t, opened, resets)
}

func newLatchGame(t testing.TB, rt *rapid.T, total int, ephemeral bool) *latchGame {
	g := &latchGame{weather: newWeather(t, rt)}
	if ephemeral {
		g.opts = append(g.opts, Ephemeral())
	}
	g.book = newLatchLedger(g.weather, total, ephemeral)
	for i := range g.houses {
		g.furnish(i)
	}
	return g
}

// furnish gives a process two objects, one for two goroutines and one for another.
func (g *latchGame) furnish(i int) {
	for _, goroutines := range []int{2, 1} {
		l := NewLatch(g.houses[i].s, testPath, g.book.total, g.opts...)
		for range goroutines {
			g.actors = append(g.actors, &latchActor{l: l, place: i})
		}
	}
}

func (g *latchGame) pick(t *rapid.T) *latchActor {
	var idle []*latchActor
	for _, a := range g.actors {
		if !g.runs(a.c) {
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
		"reset": func(t *rapid.T) {
			a := g.pick(t)
			a.c = g.start(g.houses[a.place], "reset", g.patience(t), noNumber(a.l.Reset), func(c *errand) {
				if g.proper(c) {
					g.must(g.book.resetIn(c.began, c.end) > 0, "a reset that was none")
				}
			})
		},
		"look": func(t *rapid.T) {
			a := g.pick(t)
			a.c = g.start(g.houses[a.place], "look", g.patience(t), a.l.Count, func(c *errand) {
				if g.proper(c) {
					g.must(g.book.remained(c.n, c.began, c.end), "%d remaining, which never were", c.n)
				}
			})
		},
		"die": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "house")
			g.kill(t, i)
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

func noNumber(f func(context.Context) error) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return 0, f(ctx) }
}

// count is CountDown.
func (g *latchGame) count(t *rapid.T) {
	a, event := g.pick(t), newTally()
	known := a.l.known().generation
	a.c = g.start(g.houses[a.place], "count", g.patience(t), func(ctx context.Context) (int, error) {
		return 0, a.l.in(ctx, "count-down", func(ctx context.Context, e *zkconn.Epoch) error { return a.l.countDown(ctx, e, event) })
	}, func(c *errand) {
		if errors.Is(c.err, zksync.ErrBroken) {
			g.must(int64(g.book.term().generation) > known+1, "nobody can tell of an event, with one reset since the object looked")
			return
		}
		if g.proper(c) {
			g.must(g.book.events[event.name] != nil || g.book.openIn(c.began, c.end), "an event was lost")
			g.book.done[event.name] = doneIn{a.l.door.Client(), session(a.l.door.Client())}
		}
	})
}

func (g *latchGame) wait(t *rapid.T) {
	a := g.pick(t)
	a.c = g.start(g.houses[a.place], "wait", g.patience(t), noNumber(a.l.Wait), func(c *errand) {
		if errors.Is(c.err, zksync.ErrBroken) {
			g.must(g.book.resetIn(c.began, c.end) > 0, "broken, and nobody reset it")
			return
		}
		if g.proper(c) {
			g.must(g.book.openIn(c.began, c.end), "it went through a closed latch")
		}
	})
}

// proper reports whether a call succeeded; if not, its context must have ended. mu is held.
func (g *latchGame) proper(c *errand) bool {
	if c.in.dead.Load() || c.err != nil && c.ctx.Err() != nil && errors.Is(c.err, context.Cause(c.ctx)) {
		return false
	}
	g.must(c.err == nil, "%s: an error out of place: %v", c.what, c.err)
	return c.err == nil
}

// settle waits until all is quiet. Then who waits does so at a closed latch, with too few events.
func (g *latchGame) settle(*rapid.T) {
	g.calm()
	pending := g.pending()
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.book.term()
	for _, c := range pending {
		require.Equal(g.t, "wait", c.what, "it has nobody to wait for\n%s", lazy(g.story))
		require.Zero(g.t, x.opened, "it waits at an open latch\n%s", lazy(g.story))
		require.Less(g.t, len(x.there), g.book.total, "it waits though all have been counted\n%s", lazy(g.story))
	}
	for name, by := range g.book.done {
		_, there := x.there[name]
		y := g.book.events[name]
		gone := y == nil || y.generation < x.generation || x.opened > 0 || g.book.ephemeral && session(by.client) != by.session
		require.True(g.t, there || gone, "%s was counted and is gone\n%s", name, lazy(g.story))
	}
	if !g.book.ephemeral {
		return
	}
	alive := map[int64]bool{}
	for _, h := range g.houses {
		alive[h.s.ID()] = true
	}
	for name, owner := range x.there {
		require.True(g.t, alive[owner] || x.opened > 0, "%s is of a session that is over\n%s", name, lazy(g.story))
	}
}

func (g *latchGame) end() {
	g.home()
	require.NoError(g.t, NewLatch(g.houses[1].s, testPath, g.book.total, g.opts...).Reset(context.Background()))
	l := NewLatch(g.houses[0].s, testPath, g.book.total, g.opts...)
	for i := range g.book.total {
		n, err := l.Count(context.Background())
		require.NoError(g.t, err)
		require.Equal(g.t, g.book.total-i, n)
		require.NoError(g.t, l.CountDown(context.Background()))
	}
	require.NoError(g.t, l.Wait(context.Background()))
	g.check()
}
