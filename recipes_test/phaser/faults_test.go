package phaser_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// steps is a job of three parties in two steps, with a newcomer and one that leaves, and an
// observer. action tells how often the function of WithOnAdvance ran for each phase; nil
// without one.
func steps(t *testing.T, v *proving.Env, action bool) func(name string) {
	var runs [3]atomic.Int32
	var opts []zksync.Option
	if action {
		opts = append(opts, zkphaser.WithOnAdvance(func(_ context.Context, phase, registered int) bool {
			runs[phase].Add(1)
			return registered == 0
		}))
	}
	ps := phasers(v, 3, opts...)
	return func(name string) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		gives := func(want int, f func(context.Context) (int, error)) {
			n, err := f(ctx)
			require.NoError(t, err, name)
			require.Equal(t, want, n, name)
		}
		gives(0, ps[0].Register)
		gives(0, ps[1].Register)
		watching := phase(ctx, func(ctx context.Context) (int, error) { return ps[2].AwaitAdvance(ctx, 0) })
		var all sync.WaitGroup
		all.Go(func() { gives(1, ps[0].ArriveAndAwaitAdvance) })
		all.Go(func() { gives(0, ps[1].Arrive) })
		all.Wait()
		v.Awaits(watching.Done, "the phase to end")
		require.NoError(t, watching.Err, name)
		require.Equal(t, 1, watching.phase, name)
		gives(1, ps[2].Register)
		all.Go(func() { gives(1, ps[0].ArriveAndDeregister) })
		all.Go(func() { gives(2, ps[1].ArriveAndAwaitAdvance) })
		all.Go(func() { gives(2, ps[2].ArriveAndAwaitAdvance) })
		all.Wait()
		census(v, ps[0], 0, 2)
		gives(2, ps[1].ArriveAndDeregister)
		gives(2, ps[2].ArriveAndDeregister)
		gives(terminated+3, ps[0].Phase)
		v.Later()
		require.Empty(t, v.Server.Children(proving.PhaserPath), name)
		for i := range runs {
			if action {
				require.EqualValues(t, 1, runs[i].Load(), "%s: phase %d", name, i)
			}
		}
	}
}

func TestEveryFaultLeavesThePhaserSound(t *testing.T) {
	for _, action := range []bool{false, true} {
		proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) { return steps(t, v, action) })
	}
}

func TestEveryDisconnectLeavesThePhaserSound(t *testing.T) {
	for _, action := range []bool{false, true} {
		proving.EveryTrouble(t, "disconnect", proving.Disconnects, func(t *testing.T, v *proving.Env) func(string, func()) {
			run := steps(t, v, action)
			return func(name string, _ func()) { run(name) }
		})
	}
}

// Whoever's session ends is deregistered and hears of it; the others go on.
func TestEveryExpiryLeavesThePhaserSound(t *testing.T) {
	for _, action := range []bool{false, true} {
		proving.EveryTrouble(t, "expire", proving.Expires, func(t *testing.T, v *proving.Env) func(string, func()) {
			var opts []zksync.Option
			if action {
				opts = append(opts, zkphaser.WithOnAdvance(func(_ context.Context, phase, registered int) bool { return false }))
			}
			ps := phasers(v, 3, opts...)
			return func(name string, calm func()) {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				defer cancel()
				var all sync.WaitGroup
				var lost [3]bool
				var phases [3]int
				for i, p := range ps {
					_, err := p.Register(ctx)
					require.NoError(t, err, name)
					all.Go(func() {
						for range 2 {
							n, err := p.ArriveAndAwaitAdvance(ctx)
							if errors.Is(err, zksync.ErrLost) {
								lost[i] = true
								return
							}
							require.NoError(t, err, name)
							if n < 0 { // the others had died before this one began
								return
							}
							phases[i] = n
						}
						_, err := p.ArriveAndDeregister(ctx)
						lost[i] = err != nil
						require.True(t, err == nil || errors.Is(err, zksync.ErrLost), "%s: %v", name, err)
					})
				}
				all.Wait()
				calm()
				n := 0
				for i := range ps {
					if lost[i] {
						n++
					}
				}
				require.LessOrEqual(t, n, 1, name)
				v.Later()
				census(v, ps[0], 0, 0)
			}
		})
	}
}

// A call that is cancelled at any of its requests may be repeated.
func TestEveryCancellationLeavesThePhaserSound(t *testing.T) {
	for name, fate := range map[string]zktest.Fate{"answered": zktest.Continue, "request lost": zktest.LoseRequest, "reply lost": zktest.LoseReply} {
		proving.EveryRequest(t, "cancelled, "+name, func(s *proving.Strike) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				name := s.Name
				ps := phasers(v, 2)
				v.Quiet()
				ctx, cancel := v.CancelledAt(s, fate)
				defer cancel()
				again := func(want int, f func(context.Context) (int, error)) {
					got, err := f(ctx)
					if err != nil {
						require.ErrorIs(t, err, context.Canceled, name)
						v.Later()
						got, err = f(context.Background())
					}
					require.NoError(t, err, name)
					require.Equal(t, want, got, name)
				}
				again(0, ps[0].Register)
				again(0, ps[1].Register)
				census(v, ps[0], 0, 2)
				again(0, ps[0].Arrive)
				again(0, ps[1].Arrive)
				again(1, func(ctx context.Context) (int, error) { return ps[0].AwaitAdvance(ctx, 0) })
				census(v, ps[0], 0, 2)
				again(1, ps[0].ArriveAndDeregister)
				again(1, ps[1].ArriveAndDeregister)
				again(terminated+2, func(ctx context.Context) (int, error) { return ps[0].AwaitAdvance(ctx, 1) })
				v.Later()
				require.Empty(t, v.Server.Children(proving.PhaserPath), name)
			})
		})
	}
}
