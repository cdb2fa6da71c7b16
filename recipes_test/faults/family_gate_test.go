package faults_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const gateNode = lockDir + "/closed"

// keeper knows when the gate was closed, by the server's history.
type keeper struct {
	k *kin

	mu      sync.Mutex
	changes []change
	lifting int       // calls under way that may open it
	lifted  time.Time // when the last of them was over
}

// change is the gate as it is from some time on.
type change struct {
	at     time.Time
	closed bool
}

func newKeeper(k *kin) *keeper {
	g := &keeper{k: k, changes: []change{{at: k.began}}}
	k.srv.OnCommit(func(t zktest.Txn) {
		for _, c := range t.Changes {
			if c.Path != gateNode || c.Kind == zktest.DataChanged {
				continue
			}
			g.mu.Lock()
			g.changes = append(g.changes, change{t.Time, c.Kind == zktest.Created})
			g.mu.Unlock()
		}
	})
	return g
}

// was reports whether the gate was closed, or open, at some instant since then.
func (g *keeper) was(closed bool, since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, c := range g.changes {
		over := i+1 < len(g.changes) && g.changes[i+1].at.Before(since)
		if c.closed == closed && !over {
			return true
		}
	}
	return false
}

// closed reports whether it is now.
func (g *keeper) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes[len(g.changes)-1].closed
}

// acts makes one call after which the gate must have been as said.
func (g *keeper) acts(c *client, what string, wait time.Duration, closed bool, f func(context.Context) error) {
	began := time.Now()
	quiet := g.opens(0)
	err := g.k.call(c, what, wait, f)
	if err == nil && closed && quiet && g.opens(0) && !g.closed() {
		g.k.wrong("%s returned and the gate is open, though nobody opens it", what)
	}
	if err == nil && !g.was(closed, began) {
		g.k.wrong("%s returned although the gate was never closed=%v from %v to %v", what, closed, began.Sub(g.k.began), time.Since(g.k.began))
	}
}

// lifts is acts for what opens the gate.
func (g *keeper) lifts(c *client, what string, wait time.Duration, f func(context.Context) error) {
	g.opens(1)
	defer g.opens(-1)
	g.acts(c, what, wait, false, f)
}

// opens counts calls that may open the gate. It reports whether there were none for so long that nothing of
// them can be under way any more.
func (g *keeper) opens(n int) (quiet bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	quiet = g.lifting == 0 && time.Since(g.lifted) > 3*timeout
	if g.lifting += n; n != 0 {
		g.lifted = time.Now()
	}
	return quiet
}

// looks asks whether the gate is closed.
func (g *keeper) looks(c *client, gate *zklatch.Gate, wait time.Duration) {
	began := time.Now()
	_ = g.k.call(c, "looks", wait, func(ctx context.Context) error {
		closed, err := gate.IsClosed(ctx)
		if err == nil && !g.was(closed, began) {
			g.k.wrong("IsClosed says %v, which was not so from %v to %v", closed, began.Sub(g.k.began), time.Since(g.k.began))
		}
		return err
	})
}

func useGate(t testing.TB, s *zksync.Session) {
	ctx := context.Background()
	g := zklatch.NewGate(s, lockDir)
	require.NoError(t, g.Close(ctx))
	closed, err := g.IsClosed(ctx)
	require.NoError(t, err)
	require.True(t, closed)
	require.NoError(t, g.Open(ctx))
	require.NoError(t, g.Wait(ctx))
}

func gatePlays() []play {
	return []play{{name: "gate: set, waited for, looked at, lifted", clients: 3, use: useGate, act: func(k *kin) {
		g := newKeeper(k)
		var gates []*zklatch.Gate
		for _, c := range k.clients {
			gates = append(gates, zklatch.NewGate(c.s, lockDir))
		}
		k.do(0, func() {
			g.acts(k.clients[0], "set", 0, true, gates[0].Close)
			time.Sleep(60 * ms)
			g.lifts(k.clients[0], "lift", 0, gates[0].Open)
			for g.closed() { // cancelled
				g.lifts(k.clients[0], "lift again", 0, gates[0].Open)
			}
		})
		for i, start := range []time.Duration{20 * ms, 80 * ms} {
			k.do(start, func() { g.acts(k.clients[1], fmt.Sprintf("wait %d", i), 0, false, gates[1].Wait) })
		}
		k.do(25*ms, func() {
			g.looks(k.clients[2], gates[2], 0)
			g.acts(k.clients[2], "hasty wait", 10*ms, false, gates[2].Wait)
			g.acts(k.clients[2], "set by another", 0, true, gates[2].Close)
			g.lifts(k.clients[2], "lifted by another", 0, gates[2].Open)
			g.looks(k.clients[2], gates[2], 0)
		})
	}}}
}
