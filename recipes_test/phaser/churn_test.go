package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
)

// While parties come and go at every moment, no two looks at the phaser are the same.
func TestACensusOfAPhaserDoesNotSpinWhilePartiesComeAndGo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Gives(0, phasers(v, 1)[0].Register)
		s := v.Session()
		p := zkphaser.New(s, proving.PhaserPath)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				v.Server.Create(proving.PhaserPath+"/phase-0/by-hand", nil, 0, 0)
				time.Sleep(time.Millisecond)
				v.Server.Delete(proving.PhaserPath + "/phase-0/by-hand")
				time.Sleep(time.Millisecond)
			}
		}()
		v.Server.Delay(s.ID(), time.Millisecond, time.Millisecond)
		asked := v.Counted(func() {
			_, err := p.RegisteredParties(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		require.Less(t, asked, 200, "in ten seconds")
		v.Gives(1, p.RegisteredParties)
	})
}

// Somebody has removed what the transaction deletes.
func TestATerminationThatIsRefusedForEverDoesNotSpin(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p := phasers(v, 1)[0]
		v.Gives(0, p.Register)
		v.Remove(proving.PhaserPath + "/open")
		asked := v.Counted(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			require.ErrorIs(t, p.ForceTermination(ctx), context.DeadlineExceeded)
		})
		require.Less(t, asked, 100, "in ten seconds")
	})
}
