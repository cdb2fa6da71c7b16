package zkbarrier

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zksync"
)

// doubleGame has six parties of three processes enter and leave, give up, die, and lose their sessions.
type doubleGame struct {
	*weather.World
	book   *doubleLedger
	guests []*doubleGuest
}

// doubleGuest is one party.
type doubleGuest struct {
	b  *DoubleBarrier
	in *weather.House
	c  *weather.Call

	// Guarded by weather.mu.
	inside  bool
	round   int64 // the last that it was in
	session int64 // in which it entered
}

func TestRandomUseAndFaultsOfTheDoubleBarrierAgreeWithAPlainModel(t *testing.T) {
	steps, opened, over := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			g := newDoubleGame(weather.InRapid(t, rt), rt, rapid.IntRange(1, 4).Draw(rt, "n"))
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
			for _, r := range g.book.rounds {
				opened += min(r.opened, 1)
				over += min(r.over, 1)
			}
		})
	})
	t.Logf("%d steps, %d rounds opened, %d ended", steps, opened, over)
	weather.CameTo(t, opened, over)
}

func newDoubleGame(t testing.TB, rt *rapid.T, n int) *doubleGame {
	g := &doubleGame{World: weather.New(t, rt)}
	g.book = newDoubleLedger(g.World, n)
	for i := range g.Houses {
		g.furnish(i)
	}
	return g
}

// furnish gives a process two parties.
func (g *doubleGame) furnish(i int) {
	for range 2 {
		g.guests = append(g.guests, &doubleGuest{b: NewDoubleBarrier(g.Houses[i].S, weather.TestPath, g.book.n), in: g.Houses[i]})
	}
}

// pick draws a party that is inside, or one that is not, and does nothing.
func (g *doubleGame) idle(inside bool) (some []*doubleGuest) {
	for _, x := range g.guests {
		busy := g.Runs(x.c)
		g.Mu.Lock()
		if !busy && x.inside == inside {
			some = append(some, x)
		}
		g.Mu.Unlock()
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
			if all := g.Pending(); len(all) > 0 {
				all[rapid.IntRange(0, len(all)-1).Draw(t, "call")].Cancel()
			}
		},
		"die": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "house")
			was, _ := g.Kill(t, i)
			g.guests = slices.DeleteFunc(g.guests, func(x *doubleGuest) bool { return x.in == was })
			g.furnish(i)
		},
		"settle": g.settle,
	}
}

func (g *doubleGame) enter(x *doubleGuest, t *rapid.T) {
	began := weather.Session(x.b.at.Client())
	x.c = g.Start(x.in, "enter", g.Patience(t), weather.NoNumber(x.b.Enter), func(c *weather.Call) {
		switch {
		case c.In.Dead.Load(), c.Ctx.Err() != nil && errors.Is(c.Err, context.Cause(c.Ctx)):
		case errors.Is(c.Err, zksync.ErrSessionExpired):
			g.Must(began != weather.Session(x.b.at.Client()), "%v, and it lives", c.Err)
		case errors.Is(c.Err, zksync.ErrBroken):
			g.Must(slices.ContainsFunc(g.rounds(), func(r *doubleRound) bool {
				return r.came > g.book.n && r.opened > 0 && (r.over == 0 || r.over >= c.Began)
			}), "%v, and nobody was one too many", c.Err)
		default:
			g.Must(c.Err == nil, "an error out of place: %v", c.Err)
		}
		if c.Err != nil {
			return
		}
		// The connection may have been lost since, so the client cannot be asked for the session.
		x.inside, x.round, x.session = true, x.b.entered.round, x.b.entered.epoch.Number()
		r := g.book.rounds[x.round]
		g.Must(r != nil && r.opened > 0 && r.opened <= c.End, "it entered a round that is not open")
		if r != nil {
			r.entered++
			g.Must(r.entered <= g.book.n, "%d have entered a round of %d", r.entered, g.book.n)
			g.Must(r.over == 0 || r.over >= c.Began, "it entered a round that was over before")
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
	x.c = g.Start(x.in, "leave", g.Patience(t), weather.NoNumber(x.b.Leave), func(c *weather.Call) {
		x.inside = false
		switch {
		case c.In.Dead.Load(), c.Ctx.Err() != nil && errors.Is(c.Err, context.Cause(c.Ctx)):
		case errors.Is(c.Err, zksync.ErrSessionExpired):
			g.Must(x.session != weather.Session(x.b.at.Client()), "%v, and it lives", c.Err)
		default:
			var why *BrokenError
			r := g.book.rounds[x.round]
			switch {
			case errors.As(c.Err, &why):
				g.Must(r.quit <= r.quitBefore+why.Died && why.Died <= r.quit, "%v, and %d have gone without a word, %d of them before it opened", c.Err, r.quit, r.quitBefore)
			default:
				g.Must(c.Err == nil, "an error out of place: %v", c.Err)
				g.Must(r.quit == r.quitBefore, "%d have died in round %d, and it was not told", r.quit-r.quitBefore, x.round)
			}
			g.Must(g.book.wasEmpty(x.round, c.Began, c.End), "it has left, and somebody is still in round %d", x.round)
		}
	})
}

// settle waits until all is quiet. Then everybody is where the server says, and waits for somebody.
func (g *doubleGame) settle(*rapid.T) {
	g.Calm()
	pending := g.Pending()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	r := g.book.round
	if r == nil {
		require.Empty(g.T, pending)
		return
	}
	entering, inside := map[int64]int{}, map[int64]int{}
	for _, x := range g.guests {
		switch {
		case x.c != nil && x.c.End == 0 && x.c.What == "enter":
			entering[x.in.S.ID()]++
		case x.c != nil && x.c.End == 0:
			require.NotZero(g.T, len(r.there), "it waits for nobody to leave\n%s", weather.Lazy(g.Story))
			require.Equal(g.T, r.number, x.round, "it waits for the end of another round\n%s", weather.Lazy(g.Story))
		case x.inside && x.session == weather.Session(x.b.at.Client()):
			inside[x.in.S.ID()]++
			require.Equal(g.T, r.number, x.round, "it is inside, and the round is over\n%s", weather.Lazy(g.Story))
		}
	}
	there := map[int64]int{}
	for _, owner := range r.there {
		there[owner]++
	}
	if r.opened == 0 {
		require.Equal(g.T, entering, there, "who waits for the round to open\n%s", weather.Lazy(g.Story))
		require.Less(g.T, len(r.there), g.book.n, "all are there\n%s", weather.Lazy(g.Story))
		require.Empty(g.T, inside, "inside, and the round is not open\n%s", weather.Lazy(g.Story))
		return
	}
	require.Equal(g.T, inside, there, "who is inside\n%s", weather.Lazy(g.Story))
	if len(entering) > 0 {
		require.NotEmpty(g.T, inside, "it waits outside for nobody\n%s", weather.Lazy(g.Story))
	}
}

// end has everybody leave, and others enter.
func (g *doubleGame) end() {
	g.Home()
	for _, x := range g.guests {
		g.Mu.Lock()
		inside := x.inside
		g.Mu.Unlock()
		if inside {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = x.b.Leave(ctx)
			x.inside = false
		}
	}
	g.Calm()
	var all []*weather.Call
	for i := range g.book.n {
		b := g.guests[i].b
		all = append(all, g.Start(g.guests[i].in, "round", 0, weather.NoNumber(func(ctx context.Context) error {
			if err := b.Enter(ctx); err != nil {
				return err
			}
			return b.Leave(ctx)
		}), nil))
	}
	g.Calm()
	for _, c := range all {
		require.False(g.T, g.Runs(c), "the next round\n%s", weather.Lazy(g.Story))
		require.NoError(g.T, c.Err)
	}
	require.Empty(g.T, g.Srv.Children(weather.TestPath+"/parties"))
}
