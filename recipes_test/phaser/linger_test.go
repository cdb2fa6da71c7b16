package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// An arrival lies in the queue of a server while its session goes to another one, and is applied when the session has come
// back: after the party was looked for in vain, and before or after the next request for the same arrival is applied. In
// between the call may have ended, and be repeated, also by the other method.
func TestAnArrivalThatLingersInAServerCountsOnce(t *testing.T) {
	type arrival = func(*zkphaser.Phaser, context.Context) (int, error)
	methods := map[string]arrival{"arrive": (*zkphaser.Phaser).Arrive, "deregister": (*zkphaser.Phaser).ArriveAndDeregister}
	for one, first := range methods {
		for two, second := range methods {
			for when, late := range map[string]bool{"before": false, "after": true} {
				t.Run(one+", "+two+", applied "+when, func(t *testing.T) {
					proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
						background := context.Background()
						s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
						p, other := zkphaser.New(s, proving.PhaserPath), zkphaser.New(e.SessionAt(t, 2), proving.PhaserPath)
						gives := func(want int, f func(context.Context) (int, error)) {
							t.Helper()
							got, err := f(background)
							require.NoError(t, err)
							require.Equal(t, want, got)
						}
						gives(0, other.Register)
						gives(0, p.Register)
						held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
						ctx, cancel := context.WithCancel(background)
						arrives := phase(ctx, func(ctx context.Context) (int, error) { return first(p, ctx) })
						require.NoError(t, held.WaitHeld(t.Context()))
						cancel()
						<-arrives.Done
						require.ErrorIs(t, arrives.Err, context.Canceled)
						e.Disconnect(s.ID())
						time.Sleep(100 * time.Millisecond)
						repeat := func(ctx context.Context) (int, error) { return second(p, ctx) }
						var repeated *phased
						if late {
							repeated = phase(background, repeat)
							<-repeated.Done
							proving.ComesBack(t, e, s)
							held.Release()
						} else {
							e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Times(2).LoseRequest())
							repeated = phase(background, repeat)
							time.Sleep(time.Second) // it has looked at two servers, and comes back to the first one
							require.Equal(t, 0, e.At(s.ID()))
							held.Release()
						}
						<-repeated.Done
						require.NoError(t, repeated.Err)
						time.Sleep(20 * time.Second) // two session timeouts
						gives(0, other.Arrive)
						gives(1, other.Phase)
						if n, err := other.RegisteredParties(background); one == two || late {
							require.NoError(t, err)
							require.Equal(t, map[string]int{"arrive": 2, "deregister": 1}[two], n)
						}
					})
				})
			}
		}
	}
}

// The request to deregister never came, and then the arrival was applied and its answer lost: the deregistration cannot be
// applied any more, and the next phase waits for the party.
func TestAnArrivalAfterADeregistrationThatWasLostLeavesThePartyRegistered(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bg := context.Background()
		s := v.Session()
		p, other := zkphaser.New(s, proving.PhaserPath), zkphaser.New(v.Session(), proving.PhaserPath)
		for _, x := range []*zkphaser.Phaser{other, p} {
			_, err := x.Register(bg)
			require.NoError(t, err)
		}
		v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).LoseRequest())
		ctx, cancel := context.WithTimeout(bg, time.Millisecond)
		defer cancel()
		n, err := p.ArriveAndDeregister(ctx)
		require.Error(t, err)
		require.Equal(t, -1, n)
		time.Sleep(time.Minute)
		v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).LoseReply())
		n, err = p.Arrive(bg)
		require.NoError(t, err)
		require.Equal(t, 0, n)
		n, err = other.RegisteredParties(bg)
		require.NoError(t, err)
		require.Equal(t, 2, n, "it has only arrived")
	})
}
