package zkphaser

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// settle waits until all is quiet. Then nobody waits in vain, and every party that the server has is in the
// books of a process.
func (g *phaserGame) settle(*rapid.T) {
	g.Calm()
	g.waiting()
	g.inventory()
	g.probe()
	g.Check()
}

// objects are those of living processes.
func (g *phaserGame) objects() map[*Phaser]*weather.House {
	all := map[*Phaser]*weather.House{}
	for _, a := range g.actors {
		all[a.p] = g.Houses[a.place]
	}
	return all
}

func (g *phaserGame) waiting() {
	pending := g.Pending()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	l := g.book
	for _, c := range pending {
		require.Contains(g.T, []string{"await", "wait"}, c.What, "it has nobody to wait for\n%s", weather.Lazy(g.Story))
		require.False(g.T, l.ended, "somebody waits after the end")
		require.True(g.T, l.in(l.phase) > 0 || g.untouched(l.phase), "phase %d is over, and somebody waits\n%s", l.phase, weather.Lazy(g.Story))
	}
	for phase, n := range g.arrivals() {
		moved := 0
		for _, of := range l.moved {
			moved += of[phase]
		}
		require.LessOrEqual(g.T, n, moved, "arrivals at phase %d", phase)
	}
}

// arrivals counts the calls that say that somebody arrived at a phase. mu is held.
func (g *phaserGame) arrivals() map[int]int {
	n := map[int]int{}
	for _, c := range g.Calls {
		if (c.What == "arrive" || c.What == "leave") && c.End > 0 && c.Err == nil && c.N >= 0 {
			n[c.N]++
		}
	}
	return n
}

// untouched reports whether nobody has ever been registered in a phase.
func (g *phaserGame) untouched(phase int) bool {
	n, there := g.Srv.Node(fmt.Sprintf("%s/phase-%d", weather.TestPath, phase))
	_, founded := g.Srv.Node(weather.TestPath)
	return !founded || there && n.Stat.Cversion == 0
}

// inventory compares the books of the processes with what the server has.
func (g *phaserGame) inventory() {
	epochs := map[*Phaser]int64{}
	for p := range g.objects() {
		epochs[p] = weather.Session(p.at.Client())
	}
	g.Mu.Lock()
	defer g.Mu.Unlock()
	l := g.book
	if l.ended {
		return
	}
	known := map[string]bool{}
	for p, h := range g.objects() {
		p.mu.Lock()
		for _, x := range p.parties {
			if x.epoch.Number() != epochs[p] {
				continue
			}
			known[x.name] = true
			at := l.parties[x.name]
			if x.busy || x.unsure {
				continue
			}
			require.NotNil(g.T, at, "%s is not registered any more\n%s", x.name, weather.Lazy(g.Story))
			require.Equal(g.T, x.at, at.phase, "%s", x.name)
			require.Equal(g.T, h.S.ID(), at.session, "%s", x.name)
		}
		p.mu.Unlock()
	}
	for name := range l.parties {
		require.True(g.T, known[name], "nobody knows of %s\n%s", name, weather.Lazy(g.Story))
	}
}

// probe waits for the phase to end, which makes it end if nobody is left.
func (g *phaserGame) probe() {
	g.Mu.Lock()
	phase, left, ended := g.book.phase, g.book.in(g.book.phase), g.book.ended
	g.Mu.Unlock()
	if ended || time.Now().Before(g.Frozen) {
		return
	}
	p := New(g.Houses[0].S, weather.TestPath, g.opts...)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	_, err := p.AwaitAdvance(ctx, phase)
	if left > 0 || g.untouched(phase) {
		require.ErrorIs(g.T, err, context.DeadlineExceeded, "%d have still to arrive", left)
		return
	}
	require.NoError(g.T, err, "all have arrived\n%s", weather.Lazy(g.Story))
}

// end has everybody leave.
func (g *phaserGame) end(*rapid.T) {
	g.Home()
	for range 40 {
		left := false
		for p := range g.objects() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			n, err := p.ArriveAndDeregister(ctx)
			cancel()
			left = left || n >= 0 || errors.Is(err, errArrived)
		}
		if !left {
			break
		}
		time.Sleep(5 * time.Second)
	}
	g.Calm()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if !g.book.ended {
		require.Empty(g.T, g.book.parties, "they are still registered\n%s", weather.Lazy(g.Story))
	}
	for p := range g.objects() {
		p.mu.Lock()
		require.Empty(g.T, p.parties)
		p.mu.Unlock()
	}
}
