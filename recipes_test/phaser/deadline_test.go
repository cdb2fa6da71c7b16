package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

func TestEveryCallOfAPhaserEndsWithItsContext(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(time.Minute))
		p, other := zkphaser.New(s, proving.PhaserPath), phasers(v, 1)[0]
		v.Gives(0, other.Register)
		v.Gives(0, p.Register)
		calls := []func(context.Context) (int, error){
			p.Register, p.Phase, p.RegisteredParties, p.ArrivedParties, p.UnarrivedParties,
			func(ctx context.Context) (int, error) { return p.AwaitAdvance(ctx, 0) },
			func(ctx context.Context) (int, error) { _, err := p.Terminated(ctx); return -1, err },
			func(ctx context.Context) (int, error) { return -1, p.ForceTermination(ctx) },
			p.Arrive, p.ArriveAndAwaitAdvance,
		}
		for i, f := range calls {
			heal := v.Server.Partition(s.ID())
			ctx, start := proving.Soon(t)
			n, err := f(ctx)
			require.LessOrEqual(t, time.Since(start), proving.Deadline+100*time.Millisecond, i)
			require.ErrorIs(t, err, context.DeadlineExceeded, i)
			require.Equal(t, -1, n, i)
			heal()
			v.Later()
		}
		v.Gives(0, p.ArriveAndDeregister) // once, whatever became of the others
		census(v, other, 0, 1)
		ctx, _ := proving.Soon(t)
		q := phasers(v, 1)[0]
		v.Gives(0, q.Register)
		n, err := q.ArriveAndAwaitAdvance(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, n, "it has arrived")
		v.Gives(1, other.ArriveAndAwaitAdvance)
		v.Gives(1, q.Arrive)
	})
}

// The calls fail, and have not asked in a spin.
func TestNodesThatWereRemovedByHandDoNotMakeAPhaserSpin(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ps := phasers(v, 2)
		v.Gives(0, ps[0].Register)
		v.Remove(proving.PhaserPath + "/wait-0")
		v.Server.Create(proving.PhaserPath+"/phase-0/by-hand", nil, 0, 0)
		for _, f := range []func(context.Context) (int, error){
			ps[0].Arrive, ps[1].Register, ps[0].ArriveAndAwaitAdvance,
			func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, 0) },
		} {
			n := v.Counted(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_, err := f(ctx)
				require.ErrorIs(t, err, zksync.ErrBroken)
			})
			require.Less(t, n, 20)
		}
	})
}

func TestCallsOfGroupsAndPhasersEndThoughTheServersAreFrozen(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(time.Minute))
		g, p := zkwaitgroup.New(s, proving.GroupPath), zkphaser.New(s, proving.PhaserPath)
		g.Add(2)
		v.Gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 2) })
		calls := []func(context.Context) error{
			func(ctx context.Context) error { return g.AddContext(ctx, 1) },
			g.WaitContext,
			g.DoneContext,
			func(ctx context.Context) error { _, err := g.Count(ctx); return err },
			func(ctx context.Context) error { _, err := p.Register(ctx); return err },
			func(ctx context.Context) error { _, err := p.ArriveAndAwaitAdvance(ctx); return err },
			func(ctx context.Context) error { _, err := p.AwaitAdvance(ctx, 0); return err },
			func(ctx context.Context) error { _, err := p.ArrivedParties(ctx); return err },
			p.ForceTermination,
		}
		for i, f := range calls {
			thaw := v.Server.Freeze()
			ctx, start := proving.Soon(t)
			require.ErrorIs(t, f(ctx), context.DeadlineExceeded, i)
			require.LessOrEqual(t, time.Since(start), proving.Deadline+100*time.Millisecond, i)
			thaw()
			v.Quiet()
		}
		v.Later()
		v.Remaining(g, 1) // added and taken back; and one is done
		g.Done()
		require.NoError(t, p.ForceTermination(context.Background()))
		v.Gives(terminated, p.Arrive)
		v.NothingLeft(proving.PhaserPath)
	})
}
