package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zktest"
)

// While parties come and go at every moment, no two looks at the phaser are the same.
func TestACensusOfAPhaserDoesNotSpinWhilePartiesComeAndGo(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.gives(0, v.phasers(1)[0].Register)
		s := v.session()
		p := zkphaser.New(s, phaserPath)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				v.srv.Create(phaserPath+"/phase-0/by-hand", nil, 0, 0)
				time.Sleep(time.Millisecond)
				v.srv.Delete(phaserPath + "/phase-0/by-hand")
				time.Sleep(time.Millisecond)
			}
		}()
		v.srv.Delay(s.ID(), time.Millisecond, time.Millisecond)
		asked := v.counted(func() {
			_, err := p.RegisteredParties(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		require.Less(t, asked, 200, "in ten seconds")
		v.gives(1, p.RegisteredParties)
	})
}

// Somebody has removed what the transaction deletes.
func TestATerminationThatIsRefusedForEverDoesNotSpin(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		p := v.phasers(1)[0]
		v.gives(0, p.Register)
		v.remove(phaserPath + "/open")
		asked := v.counted(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			require.ErrorIs(t, p.ForceTermination(ctx), context.DeadlineExceeded)
		})
		require.Less(t, asked, 100, "in ten seconds")
	})
}

// The servers make the base node for somebody else, and ours lags behind.
func TestABarrierAtAServerThatLagsDoesNotSpin(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		slow, other := e.SessionAt(t, 0), e.SessionAt(t, 2)
		for _, name := range []string{"Latch.Count", "DoubleBarrier.Enter", "Barrier.Waiting"} {
			path := "/lags/" + name
			catchUp := e.Lag(0)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			first := waits(ctx, uses(other, path)[name])
			time.Sleep(100 * time.Millisecond)
			before := e.Server(0).Requests()
			late := waits(ctx, uses(slow, path)[name])
			time.Sleep(time.Second)
			asked := e.Server(0).Requests() - before
			catchUp()
			<-first.done
			<-late.done
			cancel()
			require.Less(t, asked, 10, name)
			time.Sleep(time.Second)
		}
	})
}
