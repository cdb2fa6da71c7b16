package faults_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// history turns the book into operations. Its times are those of a counter, which orders what
// virtual time does not.
func (b *book) history() []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(h *hold, do action, call, ret int64) {
		ops = append(ops, porcupine.Operation{
			Input: step{do: do, token: h.token, shares: 1, exclusive: true}, Call: call, Return: ret,
		})
	}
	for _, h := range b.holds {
		add(h, acquires, h.order.asked, h.order.granted)
		if told, ok := b.lostAt[h.token]; ok {
			add(h, loses, h.order.granted, told)
		}
		switch {
		case h.err == nil:
			add(h, releases, h.order.unlocking, h.order.unlocked)
		case errors.Is(h.err, zksync.ErrLost):
			add(h, findsLost, h.order.unlocking, h.order.unlocked)
		default:
			add(h, mayRelease, h.order.unlocking, never)
		}
	}
	return ops
}

func TestHistoriesOfRandomFaultRunsAreLinearizable(t *testing.T) {
	runs := uint64(25)
	if proving.Full {
		runs = 1000
	}
	ops, losses := 0, 0
	for n := range runs {
		var h []porcupine.Operation
		synctest.Test(t, func(t *testing.T) { h = randomRun(t, seed+n) })
		for _, op := range h {
			if op.Input.(step).do == loses {
				losses++
			}
		}
		ops += len(h)
		model := sharesModel(1)
		verdict, info := porcupine.CheckOperationsVerbose(model, h, time.Minute)
		if verdict == porcupine.Illegal {
			file, err := os.CreateTemp("", "history-*.html")
			require.NoError(t, err)
			require.NoError(t, porcupine.Visualize(model, info, file))
			t.Fatalf("not linearizable: MENAGERIE_SEED=%d, see %s", seed+n, file.Name())
		}
		require.Equal(t, porcupine.Ok, verdict, "MENAGERIE_SEED=%d", seed+n)
	}
	require.Positive(t, losses, "the faults were too weak to matter")
	t.Logf("%d operations, %d losses, in %d runs from seed %d", ops, losses, runs, seed)
}

// randomRun lets nine goroutines of three clients take the lock again and again, while things go wrong.
func randomRun(t *testing.T, seed uint64) []porcupine.Operation {
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, 3, nil, zktest.WithCommitLatency(ms))
	for i, c := range w.clients {
		together := lock(c, zksync.WithHandover(rnd.IntN(4)))
		alone := lock(c, zksync.WithLinger(time.Duration(rnd.IntN(200))*ms))
		for j, m := range []*zksync.Mutex{together, together, alone} {
			w.start(party{
				name: fmt.Sprintf("%d.%d", i, j), c: c, m: m, rounds: 4, watch: rnd.IntN(2) == 0,
				start: time.Duration(rnd.IntN(2000)) * ms,
				hold:  time.Duration(1+rnd.IntN(20)) * []time.Duration{ms, 50 * ms, time.Second}[rnd.IntN(3)],
				wait:  time.Minute,
			})
		}
	}
	for range 12 {
		time.Sleep(time.Duration(rnd.IntN(3000)) * ms)
		w.misfortune(rnd)
	}
	w.finish()
	w.close()
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	return w.book.history()
}

// misfortune is one fault of which holders can be told in time.
func (w *world) misfortune(rnd *rand.Rand) {
	c := w.clients[rnd.IntN(len(w.clients))]
	d := time.Duration(rnd.IntN(15000)) * ms
	switch rnd.IntN(7) {
	case 0:
		w.srv.Disconnect(c.s.ID())
	case 1, 2:
		w.isolate(c, d)
	case 3:
		w.later(d, w.srv.DropReplies(c.s.ID()))
	case 4:
		id := c.s.ID()
		w.srv.Delay(id, d/10, d/5)
		w.later(d, func() { w.srv.Delay(id, hop, hop) })
	case 5:
		c.mu.Lock()
		c.next = append(c.next, zktest.Verdict{Fate: []zktest.Fate{zktest.LoseRequest, zktest.LoseReply}[rnd.IntN(2)]})
		c.mu.Unlock()
	case 6:
		w.later(d/2, w.srv.Freeze())
	}
}
