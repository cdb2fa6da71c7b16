package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkphaser"
)

func TestWhatAPhaserCosts(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		const parties = 10
		var ps []*zkphaser.Phaser
		for range parties {
			ps = append(ps, zkphaser.New(calm(v), phaserPath))
		}
		v.put("/phasers", "")
		v.costs(3, func() { v.gives(0, ps[0].Register) }, "look, found it, register")
		for _, p := range ps[1:] {
			v.costs(2, func() { v.gives(0, p.Register) }, "look, register")
		}
		v.costs(1, func() { v.gives(0, ps[0].Register) })
		v.costs(1, func() { v.gives(0, ps[0].ArriveAndDeregister) })
		for round := range 3 {
			v.costs(parties+1, func() {
				for _, p := range ps[1:] {
					v.costs(1, func() { v.gives(round, p.Arrive) })
				}
				v.costs(2, func() { v.gives(round, ps[0].Arrive) }, "and the advance")
			})
		}
		v.costs(2*parties, func() {
			var all sync.WaitGroup
			for _, p := range ps[1:] {
				all.Go(func() { v.gives(4, p.ArriveAndAwaitAdvance) })
			}
			v.quiet()
			v.gives(4, ps[0].ArriveAndAwaitAdvance)
			all.Wait()
		}, "an arrival and a watch each, and the last one's advance")
	})
}

// However many wait and however many of them arrive, each is woken by few events.
func TestThoseWhoWaitAtAPhaserAreWokenOnce(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		const parties = 40
		var ps []*zkphaser.Phaser
		for range parties {
			p := zkphaser.New(calm(v), phaserPath)
			v.gives(0, p.Register)
			ps = append(ps, p)
		}
		var all sync.WaitGroup
		for _, p := range ps[:parties/2] {
			all.Go(func() { v.gives(1, p.ArriveAndAwaitAdvance) })
		}
		time.Sleep(5 * time.Minute) // long enough for sentinels
		v.quiet()
		n := v.counted(func() {
			for _, p := range ps[parties/2:] {
				v.gives(0, p.Arrive)
			}
			all.Wait()
		})
		require.LessOrEqual(t, n, parties/2+1+4*parties/2, "the arrivals, the advance, and each of those who wait looks once")
	})
}

func TestTheWaitsOfAPhaserLeaveNothing(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		p, waiter := zkphaser.New(calm(v), phaserPath), zkphaser.New(calm(v), phaserPath)
		watches := v.watches()
		v.gives(0, p.Register)
		v.gives(0, waiter.Phase)
		v.quiet()
		goroutines, _ := v.goroutines()
		for range 200 {
			ctx, cancel := context.WithCancel(context.Background())
			w := phase(ctx, func(ctx context.Context) (int, error) { return waiter.AwaitAdvance(ctx, 0) })
			cancel()
			require.ErrorIs(t, v.failed(w.attempt), context.Canceled)
			ctx, cancel = context.WithCancel(context.Background())
			r := phase(ctx, waiter.Register)
			cancel()
			<-r.done
			if r.err == nil {
				v.gives(0, waiter.ArriveAndDeregister)
			}
		}
		v.queued(phaserPath+"/phase-0", 1)
		v.quiet()
		v.goroutinesBack(goroutines)
		require.LessOrEqual(t, v.watches(), watches+3)
		v.census(p, 0, 1)
		v.gives(0, p.ArriveAndDeregister)
		v.quiet()
		require.LessOrEqual(t, v.watches(), watches)
		v.nothingLeft(phaserPath)
	})
}
