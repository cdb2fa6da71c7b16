package recipes_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

const phaserPath = "/phasers/a"

func (v *env) phasers(n int, opts ...zksync.Option) []*zkphaser.Phaser {
	v.t.Helper()
	all := make([]*zkphaser.Phaser, n)
	for i := range all {
		all[i] = zkphaser.New(v.session(), phaserPath, opts...)
	}
	return all
}

// gives calls f and checks what it returns.
func (v *env) gives(want int, f func(context.Context) (int, error)) {
	v.t.Helper()
	v.flush()
	n, err := f(context.Background())
	require.NoError(v.t, err)
	require.Equal(v.t, want, n)
}

// census checks how many parties have arrived and how many have not.
func (v *env) census(p *zkphaser.Phaser, arrived, unarrived int) {
	v.t.Helper()
	v.gives(arrived, p.ArrivedParties)
	v.gives(unarrived, p.UnarrivedParties)
	v.gives(arrived+unarrived, p.RegisteredParties)
}

// phased is a call that returns a phase, in a goroutine of its own.
type phased struct {
	*attempt
	phase int
}

func phase(ctx context.Context, f func(context.Context) (int, error)) *phased {
	p := &phased{}
	p.attempt = waits(ctx, func(ctx context.Context) (err error) {
		p.phase, err = f(ctx)
		return err
	})
	return p
}

func (v *env) arrives(p *phased, want int) {
	v.t.Helper()
	v.passes(p.attempt)
	require.Equal(v.t, want, p.phase)
}

const terminated = math.MinInt32

func TestAPhaserAdvancesWhenAllHaveArrived(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ps := v.phasers(4)
		v.gives(0, ps[3].Phase)
		v.census(ps[3], 0, 0)
		for _, p := range ps[:3] {
			v.gives(0, p.Register)
		}
		for round := range 4 {
			watcher := phase(context.Background(), func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, round) })
			first := phase(context.Background(), ps[0].ArriveAndAwaitAdvance)
			v.gives(round, ps[1].Arrive)
			v.quiet()
			require.True(t, first.pending() && watcher.pending())
			v.eventually(func() bool { n, err := ps[3].ArrivedParties(context.Background()); return err == nil && n == 2 }, "two have not arrived")
			v.census(ps[3], 2, 1)
			v.gives(round+1, ps[2].ArriveAndAwaitAdvance)
			v.arrives(first, round+1)
			v.arrives(watcher, round+1)
			v.gives(round+1, ps[1].Phase)
			v.gives(round+1, func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, round) })
			v.census(ps[3], 0, 3)
		}
	})
}

func TestPartiesComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ps := v.phasers(3)
		v.gives(0, ps[0].Register)
		v.gives(0, ps[0].Arrive) // alone
		v.gives(1, ps[1].Register)
		v.gives(1, func(ctx context.Context) (int, error) { return ps[2].BulkRegister(ctx, 3) })
		v.gives(1, func(ctx context.Context) (int, error) { return ps[2].BulkRegister(ctx, 0) })
		v.census(ps[0], 0, 5)
		v.gives(1, ps[2].ArriveAndDeregister)
		v.gives(1, ps[2].ArriveAndDeregister)
		v.gives(1, ps[2].Arrive)
		v.gives(1, ps[1].ArriveAndDeregister)
		v.census(ps[0], 1, 1)
		v.gives(1, ps[0].Arrive)
		v.gives(2, ps[1].Phase)
		v.census(ps[1], 0, 2)
		v.gives(2, ps[0].ArriveAndDeregister)
		w := phase(context.Background(), func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, 2) })
		v.quiet()
		require.True(t, w.pending())
		v.gives(2, ps[2].ArriveAndDeregister)
		v.arrives(w, terminated+3)
		v.gives(terminated+3, ps[0].Register)
		v.gives(terminated+3, ps[2].ArriveAndAwaitAdvance)
		ended, err := ps[1].Terminated(context.Background())
		require.NoError(t, err)
		require.True(t, ended)
		v.nothingLeft(phaserPath)
	})
}

func TestManyPartiesOfOneProcess(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		p := v.phasers(1)[0]
		const many = 600 // more than one transaction takes
		v.gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, many) })
		v.census(p, 0, many)
		var all sync.WaitGroup
		for range many {
			all.Go(func() { v.gives(1, p.ArriveAndAwaitAdvance) })
		}
		all.Wait()
		v.gives(1, p.Phase)
		require.NoError(t, p.ForceTermination(context.Background()))
		v.queued(phaserPath, 0) // which takes a while
	})
}

func TestAnArrivalWithoutAPartyIsMisuse(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ps := v.phasers(2)
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
		v.gives(0, ps[1].Register)
		misuse()
		v.gives(0, ps[0].Register)
		v.gives(0, ps[0].Arrive)
		misuse() // twice at one phase
		v.gives(0, ps[1].Arrive)
		v.gives(1, ps[0].Arrive)
		v.gives(1, ps[1].ArriveAndDeregister)
		v.gives(2, ps[0].ArriveAndDeregister)
		v.gives(terminated+3, ps[0].Arrive)

		_, err := zkphaser.New(nil, phaserPath).Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = zkphaser.New(nil, phaserPath).Arrive(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = ps[0].BulkRegister(context.Background(), -1)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		v.put("/phasers/strange", "not a phaser")
		_, err = zkphaser.New(v.session(), "/phasers/strange").Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestForceTerminationLetsEverybodyGo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ps := v.phasers(4)
		for _, p := range ps[:3] {
			v.gives(0, p.Register)
		}
		waiters := []*phased{
			phase(context.Background(), ps[0].ArriveAndAwaitAdvance),
			phase(context.Background(), ps[1].ArriveAndAwaitAdvance),
			phase(context.Background(), func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, 0) }),
		}
		v.quiet()
		require.NoError(t, ps[3].ForceTermination(context.Background()))
		for _, w := range waiters {
			v.arrives(w, terminated)
		}
		require.NoError(t, ps[2].ForceTermination(context.Background()), "again")
		v.gives(terminated, ps[2].Arrive)
		v.gives(terminated, ps[3].Phase)
		v.gives(terminated, func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, 0) })
		v.gives(-7, func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, -7) })
		v.nothingLeft(phaserPath)
	})
}

// As in Java, after the greatest number comes 0.
func TestPhasesBeginAgainAfterTheLastNumber(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(phaserPath, `{"phase":2147483647}`)
		for _, name := range []string{"open", "wait-2147483647", "phase-2147483647", "phase-0"} {
			v.put(phaserPath+"/"+name, "")
		}
		ps := v.phasers(2)
		v.gives(math.MaxInt32, func(ctx context.Context) (int, error) { return ps[0].BulkRegister(ctx, 2) })
		v.gives(math.MaxInt32, ps[1].Register)
		v.gives(math.MaxInt32, ps[0].Arrive)
		w := phase(context.Background(), ps[1].ArriveAndAwaitAdvance)
		v.quiet()
		v.gives(0, ps[0].ArriveAndAwaitAdvance)
		v.arrives(w, 0)
		v.gives(0, ps[0].Arrive)
		v.census(ps[1], 1, 2)
	})
}

func TestGroupsAndPhasersWorkOnAnAdoptedConnection(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		sessions := []*zksync.Session{v.tapped(), v.tapped()}
		a, b := zkwaitgroup.New(sessions[0], groupPath), zkwaitgroup.New(sessions[1], groupPath)
		a.Add(2)
		b.Add(1)
		w := waits(context.Background(), b.WaitContext)
		time.Sleep(time.Second)
		require.True(t, w.pending())
		a.Done()
		b.Done()
		b.Done()
		v.passes(w)
		p, q := zkphaser.New(sessions[0], phaserPath), zkphaser.New(sessions[1], phaserPath)
		v.gives(0, p.Register)
		v.gives(0, q.Register)
		for round := range 3 {
			w := phase(context.Background(), p.ArriveAndAwaitAdvance)
			time.Sleep(time.Second)
			v.gives(round+1, q.ArriveAndAwaitAdvance)
			v.arrives(w, round+1)
		}
		v.gives(3, p.ArriveAndDeregister)
		v.gives(3, q.ArriveAndDeregister)
		v.gives(terminated+4, q.Phase)
	})
}
