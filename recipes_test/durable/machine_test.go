package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
)

// game has owners lock, resume, unlock and break, while processes die and lose their sessions.
type game struct {
	*weather.World
	book *ledger
	ms   []*zkdurable.Mutex // one for each process

	// Guarded by Mu.
	open   map[*zkdurable.Hold]*weather.House // Holds that nobody has unlocked
	calls  map[*zkdurable.Hold]*weather.Call  // the newest use of one
	claims map[zksync.Token]string            // which call says that it has ended a hold
}

var owners = []string{"a", "b", "c"}

func TestAcceptance141RandomUseAndFaultsOfADurableLockAgreeWithAPlainModel(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	grants, ends := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			w := weather.New(weather.InRapid(t, rt), rt)
			g := &game{World: w, book: newLedger(w), open: map[*zkdurable.Hold]*weather.House{},
				calls: map[*zkdurable.Hold]*weather.Call{}, claims: map[zksync.Token]string{}}
			for i := range g.Houses {
				g.ms = append(g.ms, g.mutex(i))
			}
			moves := g.Moves()
			for name, f := range map[string]func(*rapid.T){
				"lock": g.lock, "lock too": g.lock, "try": g.try, "resume": g.resume, "resume too": g.resume, "unlock": g.unlock, "unlock too": g.unlock,
				"note": g.note, "break": g.breaks, "die": g.die, "settle": g.settle, "": func(*rapid.T) { g.Check() },
			} {
				moves[name] = f
			}
			rt.Repeat(moves)
			g.settle(rt)
			g.end()
			grants += len(g.book.holds)
			for _, h := range g.book.holds {
				ends += min(h.ended, 1)
			}
		})
	})
	t.Logf("%d holds, %d ended", grants, ends)
	weather.CameTo(t, grants, ends)
}

func (g *game) mutex(i int) *zkdurable.Mutex {
	return zkdurable.NewMutex(g.Houses[i].S, weather.TestPath, zksync.WithName(fmt.Sprint("process ", i)))
}

// gets starts a call that gets a Hold.
func (g *game) gets(t *rapid.T, what string, f func(m *zkdurable.Mutex) func(context.Context, string) (*zkdurable.Hold, error)) {
	i, owner := g.One(t), rapid.SampledFrom(owners).Draw(t, "owner")
	var h *zkdurable.Hold
	in := g.Houses[i]
	get := f(g.ms[i])
	g.Start(in, what, g.Patience(t), func(ctx context.Context) (_ int, err error) {
		h, err = get(ctx, owner)
		return 0, err
	}, func(c *weather.Call) {
		if c.In.Dead.Load() {
			return
		}
		refused := errors.Is(c.Err, zksync.ErrNotAcquired) && what != "lock" || errors.Is(c.Err, zksync.ErrMisuse) && what != "resume"
		if c.Err != nil {
			g.Must(refused || g.cancelled(c), "%s: an error out of place: %v", what, c.Err)
			return
		}
		e := g.book.of(h.Token())
		e.owner, e.known = owner, true
		g.open[h] = in
	})
}

// cancelled reports whether a call has failed because its context has ended.
func (g *game) cancelled(c *weather.Call) bool {
	return c.Ctx.Err() != nil && errors.Is(c.Err, context.Cause(c.Ctx))
}

// One draws a process.
func (g *game) One(t *rapid.T) int { return rapid.IntRange(0, 2).Draw(t, "process") }

func (g *game) lock(t *rapid.T) {
	g.gets(t, "lock", func(m *zkdurable.Mutex) func(context.Context, string) (*zkdurable.Hold, error) { return m.Lock })
}

func (g *game) try(t *rapid.T) {
	g.gets(t, "try", func(m *zkdurable.Mutex) func(context.Context, string) (*zkdurable.Hold, error) {
		return m.TryLock
	})
}

func (g *game) resume(t *rapid.T) {
	g.gets(t, "resume", func(m *zkdurable.Mutex) func(context.Context, string) (*zkdurable.Hold, error) { return m.Resume })
}

// uses starts a call with one of the Holds that are open and that nobody uses.
func (g *game) uses(t *rapid.T, what string, f func(ctx context.Context, h *zkdurable.Hold) error, after func(h *zkdurable.Hold, c *weather.Call)) {
	g.Mu.Lock()
	var idle []*zkdurable.Hold
	for h, in := range g.open {
		if c := g.calls[h]; (c == nil || c.End != 0) && !in.Dead.Load() {
			idle = append(idle, h)
		}
	}
	g.Mu.Unlock()
	if len(idle) == 0 {
		t.Skip("no hold is open")
	}
	h := idle[0]
	for _, x := range idle { // the choice does not depend on the order of a map
		if x.Token().Compare(h.Token()) < 0 {
			h = x
		}
	}
	g.Mu.Lock()
	in := g.open[h]
	g.Mu.Unlock()
	c := g.Start(in, what, g.Patience(t), weather.NoNumber(func(ctx context.Context) error { return f(ctx, h) }), func(c *weather.Call) {
		if !c.In.Dead.Load() {
			after(h, c)
		}
	})
	g.Mu.Lock()
	g.calls[h] = c
	g.Mu.Unlock()
}

func (g *game) unlock(t *rapid.T) {
	g.uses(t, "unlock", func(ctx context.Context, h *zkdurable.Hold) error { return h.Unlock(ctx) }, func(h *zkdurable.Hold, c *weather.Call) {
		switch {
		case c.Err == nil, errors.Is(c.Err, zksync.ErrReleased):
			g.Must(g.book.endedBy(h.Token(), c.End), "it was unlocked, and lasts")
			g.claim(h.Token(), "unlock")
			delete(g.open, h)
		case errors.Is(c.Err, zksync.ErrLost):
			delete(g.open, h)
		default:
			g.Must(g.cancelled(c), "unlock: an error out of place: %v", c.Err)
		}
	})
}

func (g *game) note(t *rapid.T) {
	g.uses(t, "note", func(ctx context.Context, h *zkdurable.Hold) error { return h.SetNote(ctx, "note") }, func(h *zkdurable.Hold, c *weather.Call) {
		switch {
		case c.Err == nil:
			g.Must(!g.book.endedBy(h.Token(), c.Began), "a note was written when the hold had ended")
		case errors.Is(c.Err, zksync.ErrLost), errors.Is(c.Err, zksync.ErrReleased):
		default:
			g.Must(g.cancelled(c), "note: an error out of place: %v", c.Err)
		}
	})
}

// claim notes that a call says that it has ended a hold. Only one of them can.
func (g *game) claim(token zksync.Token, by string) {
	g.Must(g.claims[token] == "" || g.claims[token] == by, "%s: %s and %s have ended it", token, g.claims[token], by)
	g.claims[token] = by
}

// breaks breaks the hold of the moment, or the one before.
func (g *game) breaks(t *rapid.T) {
	i := g.One(t)
	g.Mu.Lock()
	if len(g.book.holds) == 0 {
		g.Mu.Unlock()
		t.Skip("nobody has held")
	}
	n := len(g.book.holds) - 1 - rapid.IntRange(0, min(1, len(g.book.holds)-1)).Draw(t, "before")
	token := g.book.holds[n].token
	g.Mu.Unlock()
	m := g.ms[i]
	g.Start(g.Houses[i], "break", g.Patience(t), weather.NoNumber(func(ctx context.Context) error { return m.Break(ctx, token, "why") }),
		func(c *weather.Call) {
			switch {
			case c.In.Dead.Load():
			case c.Err == nil:
				g.Must(g.book.endedBy(token, c.End), "it was broken, and lasts")
				g.claim(token, fmt.Sprint("break of ", c.Began))
			case errors.Is(c.Err, zksync.ErrStale):
				g.Must(g.book.endedBy(token, c.End), "it is stale, and lasts")
			default:
				g.Must(g.cancelled(c), "break: an error out of place: %v", c.Err)
			}
		})
}

func (g *game) die(t *rapid.T) {
	i := g.One(t)
	g.Kill(t, i)
	g.ms[i] = g.mutex(i)
}

// settle waits until all is quiet. Then who waits does so because another holds; and who holds was told, or has died.
func (g *game) settle(*rapid.T) {
	g.Calm()
	pending := g.Pending()
	data, _ := g.Srv.Node(g.book.base)
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if len(g.book.holds) > 0 {
		g.book.read(data.Data)
	}
	for _, c := range pending {
		require.Equal(g.T, "lock", c.What, "it has nobody to wait for\n%s", weather.Lazy(g.Story))
		require.NotNil(g.T, g.book.lasting, "it waits, and nobody holds\n%s", weather.Lazy(g.Story))
	}
	if x := g.book.lasting; x != nil && !x.known {
		died := false
		for _, c := range g.Calls {
			died = died || c.In.Dead.Load()
		}
		require.True(g.T, died, "%s holds, and nobody knows\n%s", x.token, weather.Lazy(g.Story))
	}
	for h, in := range g.open {
		if !in.Dead.Load() {
			require.Equal(g.T, g.book.of(h.Token()).ended != 0 || h.Err() != nil, h.Err() != nil, "%s: %v\n%s", h.Token(), h.Err(), weather.Lazy(g.Story))
		}
	}
}

// end has somebody free the lock. Then everybody can have it, and nothing is left.
func (g *game) end() {
	g.Home()
	ctx := context.Background()
	m := g.ms[0]
	for _, owner := range owners {
		x, err := m.Holder(ctx)
		require.NoError(g.T, err)
		if x.Owner != "" {
			require.NoError(g.T, m.Break(ctx, x.Token, "the end"))
		}
		h, err := m.Lock(ctx, owner)
		require.NoError(g.T, err)
		require.NoError(g.T, h.Unlock(ctx))
	}
	g.Calm()
	require.Equal(g.T, []string{"queue", "writers"}, g.Srv.Children(g.book.base), "%s", weather.Lazy(g.Story))
	require.Empty(g.T, g.Srv.Children(g.book.base+"/queue"))
	g.Check()
}
