package zkbarrier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// settle waits until all is quiet. Then nobody waits in vain, and every party that the server has is in the
// books of a process.
func (g *phaserGame) settle(*rapid.T) {
	g.calm()
	g.waiting()
	g.inventory()
	g.probe()
	g.check()
}

// objects are those of living processes.
func (g *phaserGame) objects() map[*Phaser]*house {
	all := map[*Phaser]*house{}
	for _, a := range g.actors {
		all[a.p] = g.houses[a.place]
	}
	return all
}

func (g *phaserGame) waiting() {
	pending := g.pending()
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.book
	for _, c := range pending {
		require.Contains(g.t, []string{"await", "wait"}, c.what, "it has nobody to wait for\n%s", lazy(g.story))
		require.False(g.t, l.ended, "somebody waits after the end")
		require.True(g.t, l.in(l.phase) > 0 || g.untouched(l.phase), "phase %d is over, and somebody waits\n%s", l.phase, lazy(g.story))
	}
	for phase, n := range g.arrivals() {
		moved := 0
		for _, of := range l.moved {
			moved += of[phase]
		}
		require.LessOrEqual(g.t, n, moved, "arrivals at phase %d", phase)
	}
}

// arrivals counts the calls that say that somebody arrived at a phase. mu is held.
func (g *phaserGame) arrivals() map[int]int {
	n := map[int]int{}
	for _, c := range g.calls {
		if (c.what == "arrive" || c.what == "leave") && c.end > 0 && c.err == nil && c.n >= 0 {
			n[c.n]++
		}
	}
	return n
}

// untouched reports whether nobody has ever been registered in a phase.
func (g *phaserGame) untouched(phase int) bool {
	n, there := g.srv.Node(fmt.Sprintf("%s/phase-%d", testPath, phase))
	_, founded := g.srv.Node(testPath)
	return !founded || there && n.Stat.Cversion == 0
}

// inventory compares the books of the processes with what the server has.
func (g *phaserGame) inventory() {
	epochs := map[*Phaser]int64{}
	for p := range g.objects() {
		epochs[p] = session(p.door.Client())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
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
			require.NotNil(g.t, at, "%s is not registered any more\n%s", x.name, lazy(g.story))
			require.Equal(g.t, x.at, at.phase, "%s", x.name)
			require.Equal(g.t, h.s.ID(), at.session, "%s", x.name)
		}
		p.mu.Unlock()
	}
	for name := range l.parties {
		require.True(g.t, known[name], "nobody knows of %s\n%s", name, lazy(g.story))
	}
}

// probe waits for the phase to end, which makes it end if nobody is left.
func (g *phaserGame) probe() {
	g.mu.Lock()
	phase, left, ended := g.book.phase, g.book.in(g.book.phase), g.book.ended
	g.mu.Unlock()
	if ended || time.Now().Before(g.frozen) {
		return
	}
	p := NewPhaser(g.houses[0].s, testPath, g.opts...)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	_, err := p.AwaitAdvance(ctx, phase)
	if left > 0 || g.untouched(phase) {
		require.ErrorIs(g.t, err, context.DeadlineExceeded, "%d have still to arrive", left)
		return
	}
	require.NoError(g.t, err, "all have arrived\n%s", lazy(g.story))
}

// end has everybody leave.
func (g *phaserGame) end(*rapid.T) {
	g.home()
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
	g.calm()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.book.ended {
		require.Empty(g.t, g.book.parties, "they are still registered\n%s", lazy(g.story))
	}
	for p := range g.objects() {
		p.mu.Lock()
		require.Empty(g.t, p.parties)
		p.mu.Unlock()
	}
}
