package zkbarrier

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zksync"
)

// doubleGame has six parties of three processes enter and leave, give up, die, and lose their sessions.
type doubleGame struct {
	*weather
	book   *doubleLedger
	guests []*doubleGuest
}

// doubleGuest is one party.
type doubleGuest struct {
	b  *DoubleBarrier
	in *house
	c  *errand

	// Guarded by weather.mu.
	inside  bool
	round   int64 // the last that it was in
	session int64 // in which it entered
}

func TestRandomUseAndFaultsOfTheDoubleBarrierAgreeWithAPlainModel(t *testing.T) {
	steps, opened, over := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			g := newDoubleGame(inRapid{t, rt}, rt, rapid.IntRange(1, 4).Draw(rt, "n"))
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
			for _, r := range g.book.rounds {
				opened += min(r.opened, 1)
				over += min(r.over, 1)
			}
		})
	})
	t.Logf("%d steps, %d rounds opened, %d ended", steps, opened, over)
	cameTo(t, opened, over)
}

func newDoubleGame(t testing.TB, rt *rapid.T, n int) *doubleGame {
	g := &doubleGame{weather: newWeather(t, rt)}
	g.book = newDoubleLedger(g.weather, n)
	for i := range g.houses {
		g.furnish(i)
	}
	return g
}

// furnish gives a process two parties.
func (g *doubleGame) furnish(i int) {
	for range 2 {
		g.guests = append(g.guests, &doubleGuest{b: NewDoubleBarrier(g.houses[i].s, testPath, g.book.n), in: g.houses[i]})
	}
}

// pick draws a party that is inside, or one that is not, and does nothing.
func (g *doubleGame) idle(inside bool) (some []*doubleGuest) {
	for _, x := range g.guests {
		busy := g.runs(x.c)
		g.mu.Lock()
		if !busy && x.inside == inside {
			some = append(some, x)
		}
		g.mu.Unlock()
	}
	return some
}

func (g *doubleGame) pick(t *rapid.T, inside bool) *doubleGuest {
	some := g.idle(inside)
	if len(some) == 0 {
		t.Skip("nobody is there")
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(t, "party")]
}

func (g *doubleGame) uses() map[string]func(*rapid.T) {
	enter := func(t *rapid.T) { g.enter(g.pick(t, false), t) }
	leave := func(t *rapid.T) { g.leave(g.pick(t, true), t) }
	return map[string]func(*rapid.T){
		"enter": enter, "enter too": enter, "leave": leave, "leave too": leave,
		"all enter": func(t *rapid.T) {
			for _, x := range g.idle(false) {
				g.enter(x, t)
			}
		},
		"all leave": func(t *rapid.T) {
			for _, x := range g.idle(true) {
				g.leave(x, t)
			}
		},
		"give up": func(t *rapid.T) {
			if all := g.pending(); len(all) > 0 {
				all[rapid.IntRange(0, len(all)-1).Draw(t, "call")].cancel()
			}
		},
		"die": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "house")
			was, _ := g.kill(t, i)
			g.guests = slices.DeleteFunc(g.guests, func(x *doubleGuest) bool { return x.in == was })
			g.furnish(i)
		},
		"settle": g.settle,
	}
}

func (g *doubleGame) enter(x *doubleGuest, t *rapid.T) {
	began := session(x.b.door.Client())
	x.c = g.start(x.in, "enter", g.patience(t), noNumber(x.b.Enter), func(c *errand) {
		switch {
		case c.in.dead.Load(), c.ctx.Err() != nil && errors.Is(c.err, context.Cause(c.ctx)):
		case errors.Is(c.err, zksync.ErrSessionExpired):
			g.must(began != session(x.b.door.Client()), "%v, and it lives", c.err)
		case errors.Is(c.err, zksync.ErrBroken):
			g.must(slices.ContainsFunc(g.rounds(), func(r *doubleRound) bool {
				return r.came > g.book.n && r.opened > 0 && (r.over == 0 || r.over >= c.began)
			}), "%v, and nobody was one too many", c.err)
		default:
			g.must(c.err == nil, "an error out of place: %v", c.err)
		}
		if c.err != nil {
			return
		}
		// The connection may have been lost since, so the client cannot be asked for the session.
		x.inside, x.round, x.session = true, x.b.seat.round, x.b.seat.epoch.Number()
		r := g.book.rounds[x.round]
		g.must(r != nil && r.opened > 0 && r.opened <= c.end, "it entered a round that is not open")
		if r != nil {
			r.entered++
			g.must(r.entered <= g.book.n, "%d have entered a round of %d", r.entered, g.book.n)
			g.must(r.over == 0 || r.over >= c.began, "it entered a round that was over before")
		}
	})
}

func (g *doubleGame) rounds() (all []*doubleRound) {
	for _, r := range g.book.rounds {
		all = append(all, r)
	}
	return all
}

func (g *doubleGame) leave(x *doubleGuest, t *rapid.T) {
	x.c = g.start(x.in, "leave", g.patience(t), noNumber(x.b.Leave), func(c *errand) {
		x.inside = false
		switch {
		case c.in.dead.Load(), c.ctx.Err() != nil && errors.Is(c.err, context.Cause(c.ctx)):
		case errors.Is(c.err, zksync.ErrSessionExpired):
			g.must(x.session != session(x.b.door.Client()), "%v, and it lives", c.err)
		default:
			g.must(c.err == nil, "an error out of place: %v", c.err)
			g.must(g.book.wasEmpty(x.round, c.began, c.end), "it has left, and somebody is still in round %d", x.round)
		}
	})
}

// settle waits until all is quiet. Then everybody is where the server says, and waits for somebody.
func (g *doubleGame) settle(*rapid.T) {
	g.calm()
	pending := g.pending()
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.book.round
	if r == nil {
		require.Empty(g.t, pending)
		return
	}
	entering, inside := map[int64]int{}, map[int64]int{}
	for _, x := range g.guests {
		switch {
		case x.c != nil && x.c.end == 0 && x.c.what == "enter":
			entering[x.in.s.ID()]++
		case x.c != nil && x.c.end == 0:
			require.NotZero(g.t, len(r.there), "it waits for nobody to leave\n%s", lazy(g.story))
			require.Equal(g.t, r.number, x.round, "it waits for the end of another round\n%s", lazy(g.story))
		case x.inside && x.session == session(x.b.door.Client()):
			inside[x.in.s.ID()]++
			require.Equal(g.t, r.number, x.round, "it is inside, and the round is over\n%s", lazy(g.story))
		}
	}
	there := map[int64]int{}
	for _, owner := range r.there {
		there[owner]++
	}
	if r.opened == 0 {
		require.Equal(g.t, entering, there, "who waits for the round to open\n%s", lazy(g.story))
		require.Less(g.t, len(r.there), g.book.n, "all are there\n%s", lazy(g.story))
		require.Empty(g.t, inside, "inside, and the round is not open\n%s", lazy(g.story))
		return
	}
	require.Equal(g.t, inside, there, "who is inside\n%s", lazy(g.story))
	if len(entering) > 0 {
		require.NotEmpty(g.t, inside, "it waits outside for nobody\n%s", lazy(g.story))
	}
}

// end has everybody leave, and others enter.
func (g *doubleGame) end() {
	g.home()
	for _, x := range g.guests {
		g.mu.Lock()
		inside := x.inside
		g.mu.Unlock()
		if inside {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = x.b.Leave(ctx)
			x.inside = false
		}
	}
	g.calm()
	var all []*errand
	for i := range g.book.n {
		b := g.guests[i].b
		all = append(all, g.start(g.guests[i].in, "round", 0, noNumber(func(ctx context.Context) error {
			if err := b.Enter(ctx); err != nil {
				return err
			}
			return b.Leave(ctx)
		}), nil))
	}
	g.calm()
	for _, c := range all {
		require.False(g.t, g.runs(c), "the next round\n%s", lazy(g.story))
		require.NoError(g.t, c.err)
	}
	require.Empty(g.t, g.srv.Children(testPath+"/parties"))
}
