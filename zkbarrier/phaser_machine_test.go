package zkbarrier

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zksync"
)

// phaserGame has processes with several parties do random things with one phaser, and die, and lose their
// sessions.
type phaserGame struct {
	*weather
	book   *phaserLedger
	opts   []PhaserOption
	actors []*phaserActor
	last   int // the phase with which the action ends
}

// phaserActor is a goroutine that uses a phaser object, perhaps together with others.
type phaserActor struct {
	p     *Phaser
	place int // of its process
	alone bool
	c     *errand
}

func TestRandomUseAndFaultsOfThePhaserAgreeWithAPlainModel(t *testing.T) {
	steps, phases, ends, lost := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			g := newPhaserGame(inRapid{t, rt}, rt, rapid.Bool().Draw(rt, "action"), rapid.IntRange(1, 20).Draw(rt, "last"))
			moves := g.moves()
			for name, f := range g.uses(rapid.IntRange(0, 4).Draw(rt, "may be forced") == 0) {
				moves[name] = f
			}
			for name, f := range moves {
				moves[name] = func(rt *rapid.T) { f(rt); steps++ }
			}
			moves[""] = func(*rapid.T) { g.check() }
			rt.Repeat(moves)
			g.settle(rt)
			g.end(rt)
			phases += len(g.book.history) - 1
			if g.book.ended {
				ends++
			}
			for _, c := range g.calls {
				if errors.Is(c.err, zksync.ErrLost) {
					lost++
				}
			}
		})
	})
	t.Logf("%d steps, %d phases, %d terminated, %d calls lost their party", steps, phases, ends, lost)
	cameTo(t, phases, ends)
}

func newPhaserGame(t testing.TB, rt *rapid.T, action bool, last int) *phaserGame {
	g := &phaserGame{weather: newWeather(t, rt), last: last}
	g.book = newPhaserLedger(g.weather, action)
	if action {
		g.opts = append(g.opts, WithOnAdvance(g.advance))
	}
	for i := range g.houses {
		g.furnish(i)
	}
	return g
}

// furnish gives a process its objects: two for one goroutine each, or one for two.
func (g *phaserGame) furnish(i int) {
	s := g.houses[i].s
	p := NewPhaser(s, testPath, g.opts...)
	g.actors = append(g.actors, &phaserActor{p: p, place: i, alone: i == 1})
	if i == 1 {
		p = NewPhaser(s, testPath, g.opts...)
	}
	g.actors = append(g.actors, &phaserActor{p: p, place: i, alone: i == 1})
}

// advance is the function of WithOnAdvance.
func (g *phaserGame) advance(ctx context.Context, phase, registered int) bool {
	r := &phaserRun{phase: phase, registered: registered}
	g.mu.Lock()
	g.book.runs = append(g.book.runs, r)
	g.must(phase == g.book.phase || ctx.Err() != nil, "the action of phase %d runs in phase %d", phase, g.book.phase)
	g.must(registered <= g.book.claimed, "%d are registered, and %d were", registered, g.book.claimed)
	g.must(registered >= g.book.in(after(phase)) || ctx.Err() != nil, "%d are registered, not %d", g.book.in(after(phase)), registered)
	g.mu.Unlock()
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r.end, r.lost, r.ended = g.tick(), ctx.Err() != nil, phase >= g.last
	return r.ended
}

// pick draws a goroutine that has nothing to do.
func (g *phaserGame) pick(t *rapid.T) *phaserActor {
	var idle []*phaserActor
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

func (g *phaserGame) uses(force bool) map[string]func(*rapid.T) {
	arrive := func(what string, f func(*Phaser) func(context.Context) (int, error)) func(*rapid.T) {
		return func(t *rapid.T) { g.arrive(g.pick(t), what, g.patience(t), f) }
	}
	plain := func(p *Phaser) func(context.Context) (int, error) { return p.Arrive }
	waiting := func(p *Phaser) func(context.Context) (int, error) { return p.ArriveAndAwaitAdvance }
	uses := map[string]func(*rapid.T){
		"register": func(t *rapid.T) { g.register(g.pick(t), rapid.IntRange(0, 2).Draw(t, "parties"), g.patience(t)) },
		"arrive":   arrive("arrive", plain), "arrive too": arrive("arrive", plain),
		"arrive and wait": arrive("wait", waiting), "arrive and wait too": arrive("wait", waiting),
		"leave": arrive("leave", func(p *Phaser) func(context.Context) (int, error) { return p.ArriveAndDeregister }),
		"await": func(t *rapid.T) {
			a := g.pick(t)
			g.mu.Lock()
			from := g.book.phase
			g.mu.Unlock()
			g.await(a, max(from-rapid.IntRange(0, 2).Draw(t, "back"), 0), g.patience(t))
		},
		"die": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "house")
			g.kill(t, i)
			g.actors = slices.DeleteFunc(g.actors, func(a *phaserActor) bool { return a.place == i })
			g.furnish(i)
		},
		"everybody arrives": func(t *rapid.T) {
			limit := g.patience(t)
			for _, a := range g.actors {
				if g.runs(a.c) {
					continue
				}
				if rapid.Bool().Draw(t, "waits") {
					g.arrive(a, "wait", limit, waiting)
				} else {
					g.arrive(a, "arrive", limit, plain)
				}
			}
		},
		"everybody comes": func(t *rapid.T) {
			limit := g.patience(t)
			for _, a := range g.actors {
				a.p.mu.Lock()
				idle := len(a.p.parties) == 0
				a.p.mu.Unlock()
				if idle && !g.runs(a.c) {
					g.register(a, 1, limit)
				}
			}
		},
		"settle": g.settle,
	}
	for _, often := range []string{"everybody arrives", "everybody comes"} {
		uses[often+" again"] = uses[often]
	}
	if force {
		uses["terminate"] = func(t *rapid.T) { g.terminate(g.pick(t), g.patience(t)) }
	}
	return uses
}

func (g *phaserGame) register(a *phaserActor, n int, limit time.Duration) {
	a.c = g.start(g.houses[a.place], "register", limit, func(ctx context.Context) (int, error) { return a.p.BulkRegister(ctx, n) },
		func(c *errand) { g.returned(c, false) })
}

func (g *phaserGame) await(a *phaserActor, from int, limit time.Duration) {
	a.c = g.start(g.houses[a.place], "await", limit, func(ctx context.Context) (int, error) { return a.p.AwaitAdvance(ctx, from) },
		func(c *errand) {
			g.returned(c, false)
			g.must(c.err != nil || c.n != from, "a wait for the end of %d returns in it", from)
		})
}

func (g *phaserGame) terminate(a *phaserActor, limit time.Duration) {
	g.mu.Lock()
	g.book.forcing++ // for ever, if it is cut short
	g.mu.Unlock()
	a.c = g.start(g.houses[a.place], "terminate", limit, func(ctx context.Context) (int, error) {
		return math.MinInt32, a.p.ForceTermination(ctx)
	}, func(c *errand) {
		g.must(c.err == nil && g.book.ended || c.err != nil && c.ctx.Err() != nil, "terminated: %v", c.err)
		if c.err == nil {
			g.book.forcing--
		}
	})
}

// arrive has an actor arrive in one of the forms.
func (g *phaserGame) arrive(a *phaserActor, what string, limit time.Duration, f func(*Phaser) func(context.Context) (int, error)) {
	var mine []string
	e := session(a.p.door.Client())
	a.p.mu.Lock()
	mortal := a.p.lost || e < 0 || !a.alone
	for _, x := range a.p.parties {
		mine, mortal = append(mine, x.name), mortal || x.epoch.Number() != e
	}
	a.p.mu.Unlock()
	a.c = g.start(g.houses[a.place], what, limit, f(a.p), func(c *errand) {
		g.returned(c, true)
		if !errors.Is(c.err, zksync.ErrMisuse) && !errors.Is(c.err, zksync.ErrLost) {
			return
		}
		g.must(!errors.Is(c.err, zksync.ErrLost) || mortal || e != session(a.p.door.Client()), "%s: lost, and its session lives: %v", what, c.err)
		for _, name := range mine {
			g.must(!a.alone || errors.Is(c.err, zksync.ErrLost) || !g.book.stayed(name, c.began, c.end), "%s: %v, though %s could", what, c.err, name)
		}
	})
}

// returned checks what a call returns. mu is held.
func (g *phaserGame) returned(c *errand, arrival bool) {
	if c.in.dead.Load() {
		return
	}
	switch {
	case c.err == nil && !arrival || c.err == nil && c.what == "wait" || c.err == nil && c.n < 0:
		g.must(g.book.was(c.n, c.began, c.end), "%s returns phase %d, in which it was not", c.what, c.n)
	case c.err == nil, c.ctx.Err() != nil && errors.Is(c.err, context.Cause(c.ctx)):
	case arrival && (errors.Is(c.err, zksync.ErrLost) || errors.Is(c.err, zksync.ErrMisuse)):
	default:
		g.must(false, "%s: an error out of place: %v", c.what, c.err)
	}
}
