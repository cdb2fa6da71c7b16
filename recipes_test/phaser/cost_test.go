package phaser_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestWhatAPhaserCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		const parties = 10
		var ps []*zkphaser.Phaser
		for range parties {
			ps = append(ps, zkphaser.New(proving.Calm(v), proving.PhaserPath))
		}
		v.Put("/phasers", "")
		v.Costs(3, func() { v.Gives(0, ps[0].Register) }, "look, found it, register")
		for _, p := range ps[1:] {
			v.Costs(2, func() { v.Gives(0, p.Register) }, "look, register")
		}
		v.Costs(1, func() { v.Gives(0, ps[0].Register) })
		v.Costs(1, func() { v.Gives(0, ps[0].ArriveAndDeregister) })
		for round := range 3 {
			v.Costs(parties+1, func() {
				for _, p := range ps[1:] {
					v.Costs(1, func() { v.Gives(round, p.Arrive) })
				}
				v.Costs(2, func() { v.Gives(round, ps[0].Arrive) }, "and the advance")
			})
		}
		v.Costs(2*parties, func() {
			var all sync.WaitGroup
			for _, p := range ps[1:] {
				all.Go(func() { v.Gives(4, p.ArriveAndAwaitAdvance) })
			}
			v.Quiet()
			v.Gives(4, ps[0].ArriveAndAwaitAdvance)
			all.Wait()
		}, "an arrival and a watch each, and the last one's advance")
	})
}

// The server looks at the watches of one party only after the advance, and says that what they are for is gone.
func TestAWatchThatComesAfterTheAdvanceCostsOneRequestMore(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		late := proving.Calm(v)
		slow, last := zkphaser.New(late, proving.PhaserPath), zkphaser.New(proving.Calm(v), proving.PhaserPath)
		v.Gives(0, slow.Register)
		v.Gives(0, last.Register)
		watch := v.Server.Intercept(zktest.On(zktest.SetWatches, proving.PhaserPath+"/wait-*").Of(late.ID()).Hold())
		v.Costs(2*2+1, func() {
			var waits sync.WaitGroup
			waits.Go(func() { v.Gives(1, slow.ArriveAndAwaitAdvance) })
			require.NoError(t, watch.WaitHeld(context.Background()))
			v.Gives(1, last.ArriveAndAwaitAdvance)
			watch.Release()
			waits.Wait()
		})
	})
}

// However many wait and however many of them arrive, each is woken by few events.
func TestThoseWhoWaitAtAPhaserAreWokenOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const parties = 40
		var ps []*zkphaser.Phaser
		for range parties {
			p := zkphaser.New(proving.Calm(v), proving.PhaserPath)
			v.Gives(0, p.Register)
			ps = append(ps, p)
		}
		var all sync.WaitGroup
		for _, p := range ps[:parties/2] {
			all.Go(func() { v.Gives(1, p.ArriveAndAwaitAdvance) })
		}
		time.Sleep(5 * time.Minute) // long enough for sentinels
		v.Quiet()
		n := v.Counted(func() {
			for _, p := range ps[parties/2:] {
				v.Gives(0, p.Arrive)
			}
			all.Wait()
		})
		require.LessOrEqual(t, n, parties/2+1+4*parties/2, "the arrivals, the advance, and each of those who wait looks once")
	})
}

func TestTheWaitsOfAPhaserLeaveNothing(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		p, waiter := zkphaser.New(proving.Calm(v), proving.PhaserPath), zkphaser.New(proving.Calm(v), proving.PhaserPath)
		watches := v.Watches()
		v.Gives(0, p.Register)
		v.Gives(0, waiter.Phase)
		goroutines := v.Goroutines()
		for range 200 {
			ctx, cancel := context.WithCancel(context.Background())
			w := phase(ctx, func(ctx context.Context) (int, error) { return waiter.AwaitAdvance(ctx, 0) })
			cancel()
			require.ErrorIs(t, v.Failed(w.Attempt), context.Canceled)
			ctx, cancel = context.WithCancel(context.Background())
			r := phase(ctx, waiter.Register)
			cancel()
			<-r.Done
			if r.Err == nil {
				v.Gives(0, waiter.ArriveAndDeregister)
			}
		}
		v.Queued(proving.PhaserPath+"/phase-0", 1)
		v.Quiet()
		v.GoroutinesBack(goroutines)
		require.LessOrEqual(t, v.Watches(), watches+3)
		census(v, p, 0, 1)
		v.Gives(0, p.ArriveAndDeregister)
		v.Quiet()
		require.LessOrEqual(t, v.Watches(), watches)
		v.NothingLeft(proving.PhaserPath)
	})
}
