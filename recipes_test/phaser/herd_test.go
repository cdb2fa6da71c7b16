package phaser_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zktest"
)

// One of those who wait runs the function, and the others do not queue for it.
func TestThoseWhoWaitDoNotQueueForTheFunctionWhenTheLastPartyDies(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "a second": time.Second} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				const parties = 40
				var runs atomic.Int32
				action := zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
					runs.Add(1)
					time.Sleep(takes)
					return false
				})
				dying := v.Session()
				v.Gives(0, zkphaser.New(dying, proving.PhaserPath, action).Register)
				var all []*phased
				for range parties {
					p := zkphaser.New(proving.Calm(v), proving.PhaserPath, action)
					v.Gives(0, p.Register)
					all = append(all, phase(context.Background(), p.ArriveAndAwaitAdvance))
				}
				time.Sleep(time.Minute) // each has found whom to watch
				before := v.Server.Requests()
				v.Server.Expire(dying.ID())
				for _, p := range all {
					hasArrived(v, p, 1)
				}
				v.Quiet()
				asked := v.Server.Requests() - before
				require.EqualValues(t, 1, runs.Load())
				t.Log(asked)
				require.LessOrEqual(t, asked, 5*parties)
			})
		})
	}
}

// Whether the end of the session is heard of before its consequences is chance.
func TestAWaitGoesOnWhenTheSessionEndsInWhichItRunsTheFunction(t *testing.T) {
	for _, queued := range []bool{false, true} {
		for range 30 {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				dying, s := v.Session(), v.Session()
				running := make(chan struct{}, 9)
				var runs atomic.Int32
				action := zkphaser.WithOnAdvance(func(ctx context.Context, _, _ int) bool {
					running <- struct{}{}
					if runs.Add(1) == 1 && !queued {
						<-ctx.Done()
					}
					return false
				})
				v.Gives(0, zkphaser.New(dying, proving.PhaserPath, action).Register)
				w := phase(context.Background(), func(ctx context.Context) (int, error) {
					return zkphaser.New(s, proving.PhaserPath, action).AwaitAdvance(ctx, 0)
				})
				v.Quiet()
				reach, goOn := func() { <-running }, func() {}
				if queued {
					lock := v.Server.Intercept(zktest.On(zktest.Create, proving.PhaserPath+"/action/**").Of(s.ID()).Hold())
					reach, goOn = func() { require.NoError(t, lock.WaitHeld(context.Background())) }, lock.Remove
				}
				v.Server.Expire(dying.ID())
				reach()
				v.Server.Expire(s.ID())
				goOn()
				hasArrived(v, w, 1)
			})
		}
	}
}
