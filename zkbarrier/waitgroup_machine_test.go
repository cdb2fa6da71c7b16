package zkbarrier

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

	"github.com/go-menagerie/menagerie/zktest"
)

// groupGame has processes add members, be done and wait at the same time, and die, and lose their sessions.
// Whoever adds members says that they are done, and nobody else does.
type groupGame struct {
	*weather
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
	in      *house
	members []int64
	vague   bool // a session ended while members were added
}

// groupActor is a goroutine that uses a WaitGroup, perhaps together with others.
type groupActor struct {
	m *groupModel
	c *errand
}

func TestRandomUseAndFaultsOfTheWaitGroupAgreeWithAPlainModel(t *testing.T) {
	steps, rounds, dead := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			g := newGroupGame(inRapid{t, rt}, rt)
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
			rounds += len(g.empty) / 2
			for _, c := range g.calls {
				if errors.As(c.err, new(*DeadMembersError)) {
					dead++
				}
			}
		})
	})
	t.Logf("%d steps, %d times nobody was left, %d waits were told of the dead", steps, rounds, dead)
	cameTo(t, rounds, dead)
}

func newGroupGame(t testing.TB, rt *rapid.T) *groupGame {
	g := &groupGame{weather: newWeather(t, rt), living: map[string]bool{}, empty: []int{0}}
	g.alone = true // see the limits of wait groups in docs/guarantees.md
	g.srv.OnCommit(g.commit)
	for i := range g.houses {
		g.furnish(i)
	}
	return g
}

// furnish gives a process a WaitGroup for two goroutines, and one process another.
func (g *groupGame) furnish(i int) {
	h := g.houses[i]
	for range 1 + i%2 {
		m := &groupModel{g: NewWaitGroup(h.s, testPath), in: h}
		g.groups = append(g.groups, m)
		g.actors = append(g.actors, &groupActor{m: m}, &groupActor{m: m})
	}
}

// commit follows who is alive.
func (g *groupGame) commit(txn zktest.Txn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.tick()
	for _, c := range txn.Changes {
		if !strings.HasPrefix(c.Path, testPath+"/round/alive/") {
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
		if !g.runs(a.c) {
			idle = append(idle, a)
		}
	}
	if len(idle) == 0 {
		t.Skip("all are busy")
	}
	return idle[rapid.IntRange(0, len(idle)-1).Draw(t, "actor")]
}

func (g *groupGame) uses() map[string]func(*rapid.T) {
	add := func(t *rapid.T) { g.add(g.pick(t), rapid.IntRange(1, 3).Draw(t, "members"), g.patience(t)) }
	done := func(t *rapid.T) {
		a := g.pick(t)
		n := g.left(a)
		if n == 0 {
			t.Skip("it has no members")
		}
		g.done(a, rapid.IntRange(1, n).Draw(t, "done"), g.patience(t))
	}
	wait := func(t *rapid.T) { g.wait(g.pick(t), g.patience(t)) }
	return map[string]func(*rapid.T){
		"add": add, "add too": add, "done": done, "done too": done, "done again": done, "wait": wait, "wait too": wait,
		"all are done": func(t *rapid.T) {
			limit := g.patience(t)
			for _, a := range g.actors {
				if n := g.left(a); n > 0 && !g.runs(a.c) {
					g.done(a, n, limit)
				}
			}
		},
		"die": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "house")
			was, _ := g.kill(t, i)
			g.actors = slices.DeleteFunc(g.actors, func(a *groupActor) bool { return a.m.in == was })
			g.groups = slices.DeleteFunc(g.groups, func(m *groupModel) bool { return m.in == was })
			g.furnish(i)
		},
		"settle": g.settle,
	}
}

// left is how many members of an actor's WaitGroup are not done.
func (g *groupGame) left(a *groupActor) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(a.m.members)
}

func (g *groupGame) add(a *groupActor, n int, limit time.Duration) {
	e := session(a.m.g.door.Client())
	a.c = g.start(a.m.in, "add", limit, noNumber(func(ctx context.Context) error { return a.m.g.AddContext(ctx, n) }), func(c *errand) {
		if !g.proper(c) {
			return
		}
		now := session(a.m.g.door.Client())
		a.m.vague = a.m.vague || e != now || e < 0
		for range n {
			a.m.members = append(a.m.members, now)
		}
	})
}

// done says that members are done: as few calls, or one for all.
func (g *groupGame) done(a *groupActor, n int, limit time.Duration) {
	g.mu.Lock()
	a.m.members = a.m.members[n:]
	g.mu.Unlock()
	a.c = g.start(a.m.in, "done", limit, noNumber(func(ctx context.Context) error {
		if n == 1 {
			return a.m.g.DoneContext(ctx)
		}
		return a.m.g.AddContext(ctx, -n)
	}), func(c *errand) { g.proper(c) })
}

func (g *groupGame) wait(a *groupActor, limit time.Duration) {
	a.c = g.start(a.m.in, "wait", limit, noNumber(a.m.g.WaitContext), func(c *errand) {
		var dead *DeadMembersError
		if errors.As(c.err, &dead) || g.proper(c) {
			g.must(dead == nil || g.mortal, "nobody died: %v", c.err)
			g.must(g.wasEmpty(c.began, c.end) || c.in.dead.Load(), "a wait ended, and somebody was alive all the time")
		}
	})
}

// proper reports whether a call succeeded; if not, its context must have ended. mu is held.
func (g *groupGame) proper(c *errand) bool {
	if c.in.dead.Load() || c.err != nil && c.ctx.Err() != nil && errors.Is(c.err, context.Cause(c.ctx)) {
		return false
	}
	g.must(c.err == nil, "%s: an error out of place: %v", c.what, c.err)
	return c.err == nil
}

// settle waits until all is quiet. Then who waits does so for the living, and these are who they should be.
func (g *groupGame) settle(*rapid.T) {
	g.calm()
	alive := map[int64]int{} // members by session
	for _, id := range g.srv.Children(testPath + "/round/alive") {
		life, _ := g.srv.Node(testPath + "/round/alive/" + id)
		node, there := g.srv.Node(testPath + "/round/members/" + id)
		require.True(g.t, there, "%s lives without a record\n%s", id, lazy(g.story))
		var r record
		require.NoError(g.t, json.Unmarshal(node.Data, &r))
		require.Positive(g.t, r.left(), "%s lives and is done\n%s", id, lazy(g.story))
		alive[life.Stat.EphemeralOwner] += r.left()
	}
	pending := g.pending()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range pending {
		require.Equal(g.t, "wait", c.what, "it has nobody to wait for\n%s", lazy(g.story))
		require.NotEmpty(g.t, alive, "it waits for nobody\n%s", lazy(g.story))
	}
	for _, h := range g.houses {
		want, vague := 0, false
		for _, m := range g.groups {
			if m.in != h {
				continue
			}
			now := session(m.g.door.Client())
			for _, e := range m.members {
				if e == now {
					want++
				}
			}
			vague = vague || m.vague
			m.vague = m.vague && len(m.members) > 0
		}
		require.True(g.t, vague || want == alive[h.s.ID()], "%d live, and %d should\n%s", alive[h.s.ID()], want, lazy(g.story))
		delete(alive, h.s.ID())
	}
	require.Empty(g.t, alive, "members of sessions that are over live")
}

// end has everybody be done.
func (g *groupGame) end() {
	g.home()
	for _, m := range g.groups {
		if n := len(m.members); n > 0 {
			require.NoError(g.t, m.g.AddContext(context.Background(), -n))
		}
		m.members = nil
	}
	g.settle(nil)
	n, err := g.groups[0].g.Count(context.Background())
	require.NoError(g.t, err)
	require.Zero(g.t, n, "%s", lazy(g.story))
	if err = g.groups[1].g.WaitContext(context.Background()); err != nil {
		require.ErrorAs(g.t, err, new(*DeadMembersError))
	}
	for _, child := range g.srv.Children(testPath) {
		require.Equal(g.t, "dead", child, "%s", lazy(g.story))
	}
}
