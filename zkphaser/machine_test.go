package zkphaser

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zksync"
)

// phaserGame has processes with several parties do random things with one phaser, and die, and lose their
// sessions.
type phaserGame struct {
	*weather.World
	book   *phaserLedger
	opts   []zksync.Option
	actors []*phaserActor
	last   int // the phase with which the action ends
}

// phaserActor is a goroutine that uses a phaser object, perhaps together with others.
type phaserActor struct {
	p     *Phaser
	place int // of its process
	alone bool
	c     *weather.Call
}

func TestRandomUseAndFaultsOfThePhaserAgreeWithAPlainModel(t *testing.T) {
	steps, phases, ends, lost := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			g := newPhaserGame(weather.InRapid(t, rt), rt, rapid.Bool().Draw(rt, "action"), rapid.IntRange(1, 20).Draw(rt, "last"))
			moves := g.Moves()
			for name, f := range g.uses(rapid.IntRange(0, 4).Draw(rt, "may be forced") == 0) {
				moves[name] = f
			}
			for name, f := range moves {
				moves[name] = func(rt *rapid.T) { f(rt); steps++ }
			}
			moves[""] = func(*rapid.T) { g.Check() }
			rt.Repeat(moves)
			g.settle(rt)
			g.end(rt)
			phases += len(g.book.history) - 1
			if g.book.ended {
				ends++
			}
			for _, c := range g.Calls {
				if errors.Is(c.Err, zksync.ErrLost) {
					lost++
				}
			}
		})
	})
	t.Logf("%d steps, %d phases, %d terminated, %d calls lost their party", steps, phases, ends, lost)
	weather.CameTo(t, phases, ends)
}

func newPhaserGame(t testing.TB, rt *rapid.T, action bool, last int) *phaserGame {
	g := &phaserGame{World: weather.New(t, rt), last: last}
	g.book = newPhaserLedger(g.World, action)
	if action {
		g.opts = append(g.opts, WithOnAdvance(g.advance))
	}
	for i := range g.Houses {
		g.furnish(i)
	}
	return g
}

// furnish gives a process its objects: two for one goroutine each, or one for two.
func (g *phaserGame) furnish(i int) {
	s := g.Houses[i].S
	p := New(s, weather.TestPath, g.opts...)
	g.actors = append(g.actors, &phaserActor{p: p, place: i, alone: i == 1})
	if i == 1 {
		p = New(s, weather.TestPath, g.opts...)
	}
	g.actors = append(g.actors, &phaserActor{p: p, place: i, alone: i == 1})
}

// advance is the function of WithOnAdvance.
func (g *phaserGame) advance(ctx context.Context, phase, registered int) bool {
	r := &phaserRun{phase: phase, registered: registered}
	g.Mu.Lock()
	g.book.runs = append(g.book.runs, r)
	g.Must(phase == g.book.phase || ctx.Err() != nil, "the action of phase %d runs in phase %d", phase, g.book.phase)
	g.Must(registered <= g.book.claimed, "%d are registered, and %d were", registered, g.book.claimed)
	g.Must(registered >= g.book.in(after(phase)) || ctx.Err() != nil, "%d are registered, not %d", g.book.in(after(phase)), registered)
	g.Mu.Unlock()
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
	}
	g.Mu.Lock()
	defer g.Mu.Unlock()
	r.end, r.lost, r.ended = g.Tick(), ctx.Err() != nil, phase >= g.last
	return r.ended
}

// pick draws a goroutine that has nothing to do.
func (g *phaserGame) pick(t *rapid.T) *phaserActor {
	var idle []*phaserActor
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

func (g *phaserGame) uses(force bool) map[string]func(*rapid.T) {
	arrive := func(what string, f func(*Phaser) func(context.Context) (int, error)) func(*rapid.T) {
		return func(t *rapid.T) { g.arrive(g.pick(t), what, g.Patience(t), f) }
	}
	plain := func(p *Phaser) func(context.Context) (int, error) { return p.Arrive }
	waiting := func(p *Phaser) func(context.Context) (int, error) { return p.ArriveAndAwaitAdvance }
	uses := map[string]func(*rapid.T){
		"register": func(t *rapid.T) { g.register(g.pick(t), rapid.IntRange(0, 2).Draw(t, "parties"), g.Patience(t)) },
		"arrive":   arrive("arrive", plain), "arrive too": arrive("arrive", plain),
		"arrive and wait": arrive("wait", waiting), "arrive and wait too": arrive("wait", waiting),
		"leave": arrive("leave", func(p *Phaser) func(context.Context) (int, error) { return p.ArriveAndDeregister }),
		"await": func(t *rapid.T) {
			a := g.pick(t)
			g.Mu.Lock()
			from := g.book.phase
			g.Mu.Unlock()
			g.await(a, max(from-rapid.IntRange(0, 2).Draw(t, "back"), 0), g.Patience(t))
		},
		"die": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "house")
			g.Kill(t, i)
			g.actors = slices.DeleteFunc(g.actors, func(a *phaserActor) bool { return a.place == i })
			g.furnish(i)
		},
		"everybody arrives": func(t *rapid.T) {
			limit := g.Patience(t)
			for _, a := range g.actors {
				if g.Runs(a.c) {
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
			limit := g.Patience(t)
			for _, a := range g.actors {
				a.p.mu.Lock()
				idle := len(a.p.parties) == 0
				a.p.mu.Unlock()
				if idle && !g.Runs(a.c) {
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
		uses["terminate"] = func(t *rapid.T) { g.terminate(g.pick(t), g.Patience(t)) }
	}
	return uses
}

func (g *phaserGame) register(a *phaserActor, n int, limit time.Duration) {
	a.c = g.Start(g.Houses[a.place], "register", limit, func(ctx context.Context) (int, error) { return a.p.BulkRegister(ctx, n) },
		func(c *weather.Call) { g.returned(c, false) })
}

func (g *phaserGame) await(a *phaserActor, from int, limit time.Duration) {
	a.c = g.Start(g.Houses[a.place], "await", limit, func(ctx context.Context) (int, error) { return a.p.AwaitAdvance(ctx, from) },
		func(c *weather.Call) {
			g.returned(c, false)
			g.Must(c.Err != nil || c.N != from, "a wait for the end of %d returns in it", from)
		})
}

func (g *phaserGame) terminate(a *phaserActor, limit time.Duration) {
	g.Mu.Lock()
	g.book.forcing++ // for ever, if it is cut short
	g.Mu.Unlock()
	a.c = g.Start(g.Houses[a.place], "terminate", limit, func(ctx context.Context) (int, error) {
		return math.MinInt32, a.p.ForceTermination(ctx)
	}, func(c *weather.Call) {
		g.Must(c.Err == nil && g.book.ended || c.Err != nil && c.Ctx.Err() != nil, "terminated: %v", c.Err)
		if c.Err == nil {
			g.book.forcing--
		}
	})
}

// arrive has an actor arrive in one of the forms.
func (g *phaserGame) arrive(a *phaserActor, what string, limit time.Duration, f func(*Phaser) func(context.Context) (int, error)) {
	var mine []string
	e := weather.Session(a.p.at.Client())
	a.p.mu.Lock()
	mortal := a.p.lost || e < 0 || !a.alone
	for _, x := range a.p.parties {
		mine, mortal = append(mine, x.name), mortal || x.epoch.Number() != e
	}
	a.p.mu.Unlock()
	a.c = g.Start(g.Houses[a.place], what, limit, f(a.p), func(c *weather.Call) {
		g.returned(c, true)
		if !errors.Is(c.Err, zksync.ErrMisuse) && !errors.Is(c.Err, zksync.ErrLost) {
			return
		}
		g.Must(!errors.Is(c.Err, zksync.ErrLost) || mortal || e != weather.Session(a.p.at.Client()), "%s: lost, and its session lives: %v", what, c.Err)
		for _, name := range mine {
			g.Must(!a.alone || errors.Is(c.Err, zksync.ErrLost) || !g.book.stayed(name, c.Began, c.End), "%s: %v, though %s could", what, c.Err, name)
		}
	})
}

// returned checks what a call returns. mu is held.
func (g *phaserGame) returned(c *weather.Call, arrival bool) {
	if c.In.Dead.Load() {
		return
	}
	switch {
	case c.Err == nil && !arrival || c.Err == nil && c.What == "wait" || c.Err == nil && c.N < 0:
		g.Must(g.book.was(c.N, c.Began, c.End), "%s returns phase %d, in which it was not", c.What, c.N)
	case c.Err == nil, c.Ctx.Err() != nil && errors.Is(c.Err, context.Cause(c.Ctx)):
	case arrival && (errors.Is(c.Err, zksync.ErrLost) || errors.Is(c.Err, zksync.ErrMisuse)):
	default:
		g.Must(false, "%s: an error out of place: %v", c.What, c.Err)
	}
}
