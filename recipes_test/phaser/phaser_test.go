package phaser_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
)

func phasers(v *proving.Env, n int, opts ...zksync.Option) []*zkphaser.Phaser {
	v.T.Helper()
	all := make([]*zkphaser.Phaser, n)
	for i := range all {
		all[i] = zkphaser.New(v.Session(), proving.PhaserPath, opts...)
	}
	return all
}

// census checks how many parties have arrived and how many have not.
func census(v *proving.Env, p *zkphaser.Phaser, arrived, unarrived int) {
	v.T.Helper()
	v.Gives(arrived, p.ArrivedParties)
	v.Gives(unarrived, p.UnarrivedParties)
	v.Gives(arrived+unarrived, p.RegisteredParties)
}

// phased is a call that returns a phase, in a goroutine of its own.
type phased struct {
	*proving.Attempt
	phase int
}

func phase(ctx context.Context, f func(context.Context) (int, error)) *phased {
	p := &phased{}
	p.Attempt = proving.Waits(ctx, func(ctx context.Context) (err error) {
		p.phase, err = f(ctx)
		return err
	})
	return p
}

func hasArrived(v *proving.Env, p *phased, want int) {
	v.T.Helper()
	v.Passes(p.Attempt)
	require.Equal(v.T, want, p.phase)
}

const terminated = math.MinInt32

func TestAPhaserAdvancesWhenAllHaveArrived(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ps := phasers(v, 4)
		v.Gives(0, ps[3].Phase)
		census(v, ps[3], 0, 0)
		for _, p := range ps[:3] {
			v.Gives(0, p.Register)
		}
		for round := range 4 {
			watcher := phase(context.Background(), func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, round) })
			first := phase(context.Background(), ps[0].ArriveAndAwaitAdvance)
			v.Gives(round, ps[1].Arrive)
			v.Quiet()
			require.True(t, first.Pending() && watcher.Pending())
			v.Eventually(func() bool { n, err := ps[3].ArrivedParties(context.Background()); return err == nil && n == 2 }, "two have not arrived")
			census(v, ps[3], 2, 1)
			v.Gives(round+1, ps[2].ArriveAndAwaitAdvance)
			hasArrived(v, first, round+1)
			hasArrived(v, watcher, round+1)
			v.Gives(round+1, ps[1].Phase)
			v.Gives(round+1, func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, round) })
			census(v, ps[3], 0, 3)
		}
	})
}

func TestPartiesComeAndGo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ps := phasers(v, 3)
		v.Gives(0, ps[0].Register)
		v.Gives(0, ps[0].Arrive) // alone
		v.Gives(1, ps[1].Register)
		v.Gives(1, func(ctx context.Context) (int, error) { return ps[2].BulkRegister(ctx, 3) })
		v.Gives(1, func(ctx context.Context) (int, error) { return ps[2].BulkRegister(ctx, 0) })
		census(v, ps[0], 0, 5)
		v.Gives(1, ps[2].ArriveAndDeregister)
		v.Gives(1, ps[2].ArriveAndDeregister)
		v.Gives(1, ps[2].Arrive)
		v.Gives(1, ps[1].ArriveAndDeregister)
		census(v, ps[0], 1, 1)
		v.Gives(1, ps[0].Arrive)
		v.Gives(2, ps[1].Phase)
		census(v, ps[1], 0, 2)
		v.Gives(2, ps[0].ArriveAndDeregister)
		w := phase(context.Background(), func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, 2) })
		v.Quiet()
		require.True(t, w.Pending())
		v.Gives(2, ps[2].ArriveAndDeregister)
		hasArrived(v, w, terminated+3)
		v.Gives(terminated+3, ps[0].Register)
		v.Gives(terminated+3, ps[2].ArriveAndAwaitAdvance)
		ended, err := ps[1].Terminated(context.Background())
		require.NoError(t, err)
		require.True(t, ended)
		v.NothingLeft(proving.PhaserPath)
	})
}

func TestManyPartiesOfOneProcess(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		p := phasers(v, 1)[0]
		const many = 600 // more than one transaction takes
		v.Gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, many) })
		census(v, p, 0, many)
		var all sync.WaitGroup
		for range many {
			all.Go(func() { v.Gives(1, p.ArriveAndAwaitAdvance) })
		}
		all.Wait()
		v.Gives(1, p.Phase)
		require.NoError(t, p.ForceTermination(context.Background()))
		v.Queued(proving.PhaserPath, 0) // which takes a while
	})
}

func TestAnArrivalWithoutAPartyIsMisuse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ps := phasers(v, 2)
		arrivals := []func(context.Context) (int, error){ps[0].Arrive, ps[0].ArriveAndAwaitAdvance, ps[0].ArriveAndDeregister}
		misuse := func() {
			t.Helper()
			for _, f := range arrivals {
				n, err := f(context.Background())
				require.ErrorIs(t, err, zksync.ErrMisuse)
				require.Equal(t, -1, n)
			}
		}
		misuse()
		v.Gives(0, ps[1].Register)
		misuse()
		v.Gives(0, ps[0].Register)
		v.Gives(0, ps[0].Arrive)
		misuse() // twice at one phase
		v.Gives(0, ps[1].Arrive)
		v.Gives(1, ps[0].Arrive)
		v.Gives(1, ps[1].ArriveAndDeregister)
		v.Gives(2, ps[0].ArriveAndDeregister)
		v.Gives(terminated+3, ps[0].Arrive)

		_, err := zkphaser.New(nil, proving.PhaserPath).Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = zkphaser.New(nil, proving.PhaserPath).Arrive(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = ps[0].BulkRegister(context.Background(), -1)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		v.Put("/phasers/strange", "not a phaser")
		_, err = zkphaser.New(v.Session(), "/phasers/strange").Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestForceTerminationLetsEverybodyGo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ps := phasers(v, 4)
		for _, p := range ps[:3] {
			v.Gives(0, p.Register)
		}
		waiters := []*phased{
			phase(context.Background(), ps[0].ArriveAndAwaitAdvance),
			phase(context.Background(), ps[1].ArriveAndAwaitAdvance),
			phase(context.Background(), func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, 0) }),
		}
		v.Quiet()
		require.NoError(t, ps[3].ForceTermination(context.Background()))
		for _, w := range waiters {
			hasArrived(v, w, terminated)
		}
		require.NoError(t, ps[2].ForceTermination(context.Background()), "again")
		v.Gives(terminated, ps[2].Arrive)
		v.Gives(terminated, ps[3].Phase)
		v.Gives(terminated, func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, 0) })
		v.Gives(-7, func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, -7) })
		v.NothingLeft(proving.PhaserPath)
	})
}

// As in Java, after the greatest number comes 0.
func TestPhasesBeginAgainAfterTheLastNumber(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.PhaserPath, `{"phase":2147483647}`)
		for _, name := range []string{"open", "wait-2147483647", "phase-2147483647", "phase-0"} {
			v.Put(proving.PhaserPath+"/"+name, "")
		}
		ps := phasers(v, 2)
		v.Gives(math.MaxInt32, func(ctx context.Context) (int, error) { return ps[0].BulkRegister(ctx, 2) })
		v.Gives(math.MaxInt32, ps[1].Register)
		v.Gives(math.MaxInt32, ps[0].Arrive)
		w := phase(context.Background(), ps[1].ArriveAndAwaitAdvance)
		v.Quiet()
		v.Gives(0, ps[0].ArriveAndAwaitAdvance)
		hasArrived(v, w, 0)
		v.Gives(0, ps[0].Arrive)
		census(v, ps[1], 1, 2)
	})
}
