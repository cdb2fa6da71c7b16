package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zktest"
)

// groupGame has processes add members, be done and wait at the same time, and die, and lose their sessions.
// Whoever adds members says that they are done, and nobody else does.
type groupGame struct {
	*weather.World
	actors []*groupActor

	// Guarded by weather.mu.
	mortal bool            // a session ended with living members
	living map[string]bool // nodes in alive
	empty  []int           // instants from and to which alive was empty, in turns
	groups []*groupModel
}

// groupModel is what one WaitGroup should know: its members that are not done, by the session in which
// they were added, oldest first.
type groupModel struct {
	g       *WaitGroup
	in      *weather.House
	members []int64
	vague   bool // a session ended while members were added
}

// groupActor is a goroutine that uses a WaitGroup, perhaps together with others.
type groupActor struct {
	m *groupModel
	c *weather.Call
}

func TestRandomUseAndFaultsOfTheWaitGroupAgreeWithAPlainModel(t *testing.T) {
	steps, rounds, dead := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			g := newGroupGame(weather.InRapid(t, rt), rt)
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
			rounds += len(g.empty) / 2
			for _, c := range g.Calls {
				if errors.As(c.Err, new(*DeadMembersError)) {
					dead++
				}
			}
		})
	})
	t.Logf("%d steps, %d times nobody was left, %d waits were told of the dead", steps, rounds, dead)
	weather.CameTo(t, rounds, dead)
}

func newGroupGame(t testing.TB, rt *rapid.T) *groupGame {
	g := &groupGame{World: weather.New(t, rt), living: map[string]bool{}, empty: []int{0}}
	g.Alone = true // see the limits of wait groups in docs/guarantees/parties.md
	g.Srv.OnCommit(g.commit)
	for i := range g.Houses {
		g.furnish(i)
	}
	return g
}

// furnish gives a process a WaitGroup for two goroutines, and one process another.
func (g *groupGame) furnish(i int) {
	h := g.Houses[i]
	for range 1 + i%2 {
		m := &groupModel{g: New(h.S, weather.TestPath), in: h}
		g.groups = append(g.groups, m)
		g.actors = append(g.actors, &groupActor{m: m}, &groupActor{m: m})
	}
}

// commit follows who is alive.
func (g *groupGame) commit(txn zktest.Txn) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	now := g.Tick()
	for _, c := range txn.Changes {
		if !strings.HasPrefix(c.Path, weather.TestPath+"/round/alive/") {
			continue
		}
		if c.Kind == zktest.Deleted {
			delete(g.living, c.Path)
			g.mortal = g.mortal || txn.Op == zktest.CloseSession
		} else {
			g.living[c.Path] = true
		}
	}
	if (len(g.living) == 0) != (len(g.empty)%2 == 1) {
		g.empty = append(g.empty, now)
	}
}

// wasEmpty reports whether nobody was alive at some time.
func (g *groupGame) wasEmpty(from, to int) bool {
	for i := 0; i < len(g.empty); i += 2 {
		if g.empty[i] <= to && (i+1 == len(g.empty) || g.empty[i+1] >= from) {
			return true
		}
	}
	return false
}

func (g *groupGame) pick(t *rapid.T) *groupActor {
	var idle []*groupActor
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

func (g *groupGame) uses() map[string]func(*rapid.T) {
	add := func(t *rapid.T) { g.add(g.pick(t), rapid.IntRange(1, 3).Draw(t, "members"), g.Patience(t)) }
	done := func(t *rapid.T) {
		a := g.pick(t)
		n := g.left(a)
		if n == 0 {
			t.Skip("it has no members")
		}
		g.done(a, rapid.IntRange(1, n).Draw(t, "done"), g.Patience(t))
	}
	wait := func(t *rapid.T) { g.wait(g.pick(t), g.Patience(t)) }
	return map[string]func(*rapid.T){
		"add": add, "add too": add, "done": done, "done too": done, "done again": done, "wait": wait, "wait too": wait,
		"all are done": func(t *rapid.T) {
			limit := g.Patience(t)
			for _, a := range g.actors {
				if n := g.left(a); n > 0 && !g.Runs(a.c) {
					g.done(a, n, limit)
				}
			}
		},
		"die": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "house")
			was, _ := g.Kill(t, i)
			g.actors = slices.DeleteFunc(g.actors, func(a *groupActor) bool { return a.m.in == was })
			g.groups = slices.DeleteFunc(g.groups, func(m *groupModel) bool { return m.in == was })
			g.furnish(i)
		},
		"settle": g.settle,
	}
}

// left is how many members of an actor's WaitGroup are not done.
func (g *groupGame) left(a *groupActor) int {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	return len(a.m.members)
}

func (g *groupGame) add(a *groupActor, n int, limit time.Duration) {
	e := weather.Session(a.m.g.at.Client())
	a.c = g.Start(a.m.in, "add", limit, weather.NoNumber(func(ctx context.Context) error { return a.m.g.AddContext(ctx, n) }), func(c *weather.Call) {
		if !g.proper(c) {
			return
		}
		now := weather.Session(a.m.g.at.Client())
		a.m.vague = a.m.vague || e != now || e < 0
		for range n {
			a.m.members = append(a.m.members, now)
		}
	})
}

// done says that members are done: as few calls, or one for all.
func (g *groupGame) done(a *groupActor, n int, limit time.Duration) {
	g.Mu.Lock()
	a.m.members = a.m.members[n:]
	g.Mu.Unlock()
	a.c = g.Start(a.m.in, "done", limit, weather.NoNumber(func(ctx context.Context) error {
		if n == 1 {
			return a.m.g.DoneContext(ctx)
		}
		return a.m.g.AddContext(ctx, -n)
	}), func(c *weather.Call) { g.proper(c) })
}

func (g *groupGame) wait(a *groupActor, limit time.Duration) {
	a.c = g.Start(a.m.in, "wait", limit, weather.NoNumber(a.m.g.WaitContext), func(c *weather.Call) {
		var dead *DeadMembersError
		if errors.As(c.Err, &dead) || g.proper(c) {
			g.Must(dead == nil || g.mortal, "nobody died: %v", c.Err)
			g.Must(g.wasEmpty(c.Began, c.End) || c.In.Dead.Load(), "a wait ended, and somebody was alive all the time")
		}
	})
}

// proper reports whether a call succeeded; if not, its context must have ended. mu is held.
func (g *groupGame) proper(c *weather.Call) bool {
	if c.In.Dead.Load() || c.Err != nil && c.Ctx.Err() != nil && errors.Is(c.Err, context.Cause(c.Ctx)) {
		return false
	}
	g.Must(c.Err == nil, "%s: an error out of place: %v", c.What, c.Err)
	return c.Err == nil
}

// settle waits until all is quiet. Then who waits does so for the living, and these are who they should be.
func (g *groupGame) settle(*rapid.T) {
	g.Calm()
	alive := map[int64]int{} // members by session
	for _, id := range g.Srv.Children(weather.TestPath + "/round/alive") {
		life, _ := g.Srv.Node(weather.TestPath + "/round/alive/" + id)
		node, there := g.Srv.Node(weather.TestPath + "/round/members/" + id)
		require.True(g.T, there, "%s lives without a record\n%s", id, weather.Lazy(g.Story))
		var r tally
		require.NoError(g.T, json.Unmarshal(node.Data, &r))
		require.Positive(g.T, r.left(), "%s lives and is done\n%s", id, weather.Lazy(g.Story))
		alive[life.Stat.EphemeralOwner] += r.left()
	}
	pending := g.Pending()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for _, c := range pending {
		require.Equal(g.T, "wait", c.What, "it has nobody to wait for\n%s", weather.Lazy(g.Story))
		require.NotEmpty(g.T, alive, "it waits for nobody\n%s", weather.Lazy(g.Story))
	}
	for _, h := range g.Houses {
		want, vague := 0, false
		for _, m := range g.groups {
			if m.in != h {
				continue
			}
			now := weather.Session(m.g.at.Client())
			for _, e := range m.members {
				if e == now {
					want++
				}
			}
			vague = vague || m.vague
			m.vague = m.vague && len(m.members) > 0
		}
		require.True(g.T, vague || want == alive[h.S.ID()], "%d live, and %d should\n%s", alive[h.S.ID()], want, weather.Lazy(g.Story))
		delete(alive, h.S.ID())
	}
	require.Empty(g.T, alive, "members of sessions that are over live")
}

// end has everybody be done.
func (g *groupGame) end() {
	g.Home()
	for _, m := range g.groups {
		if n := len(m.members); n > 0 {
			require.NoError(g.T, m.g.AddContext(context.Background(), -n))
		}
		m.members = nil
	}
	g.settle(nil)
	n, err := g.groups[0].g.Count(context.Background())
	require.NoError(g.T, err)
	require.Zero(g.T, n, "%s", weather.Lazy(g.Story))
	if err = g.groups[1].g.WaitContext(context.Background()); err != nil {
		require.ErrorAs(g.T, err, new(*DeadMembersError))
	}
	for _, child := range g.Srv.Children(weather.TestPath) {
		require.Equal(g.T, "dead", child, "%s", weather.Lazy(g.Story))
	}
}
