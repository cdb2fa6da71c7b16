package waitgroup_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

func groups(v *proving.Env, n int) []*zkwaitgroup.WaitGroup {
	v.T.Helper()
	all := make([]*zkwaitgroup.WaitGroup, n)
	for i := range all {
		all[i] = zkwaitgroup.New(v.Session(), proving.GroupPath)
	}
	return all
}

func TestAWaitGroupWaitsForAllOfAllProcesses(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 3)
		gs[0].Add(2)
		gs[1].Add(1)
		v.Remaining(gs[2], 3)
		waiters := []*proving.Attempt{proving.Waits(context.Background(), gs[0].WaitContext), proving.Waits(context.Background(), gs[2].WaitContext)}
		mirror := make(chan struct{})
		go func() { gs[1].Wait(); close(mirror) }()
		gs[0].Done()
		gs[1].Done()
		v.Quiet()
		require.True(t, waiters[0].Pending() && waiters[1].Pending())
		v.Remaining(gs[1], 1)
		require.NoError(t, gs[0].DoneContext(context.Background()))
		for _, w := range waiters {
			v.Passes(w)
		}
		v.Awaits(mirror, "Wait")
		v.NothingLeft(proving.GroupPath)
		start := time.Now()
		gs[1].Wait()
		require.NoError(t, gs[2].WaitContext(context.Background()))
		v.AtOnce(start, "Wait for nobody")
	})
}

func TestMembersMayBeAddedWhileOthersWait(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 3)
		gs[0].Add(1)
		v.Flush()
		w := proving.Waits(context.Background(), gs[2].WaitContext)
		v.Quiet()
		for range 3 {
			gs[1].Add(1)
			gs[0].Done()
			v.Quiet()
			require.True(t, w.Pending())
			gs[0].Add(1)
			gs[1].Done()
		}
		gs[0].Done()
		v.Passes(w)
		v.Remaining(gs[1], 0)
	})
}

func TestGoRunsAMemberOfTheGroup(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 2)
		var ran atomic.Int32
		for range 5 {
			gs[0].Go(func() { <-time.After(20 * time.Millisecond); ran.Add(1) })
			require.NoError(t, gs[1].GoContext(context.Background(), func(ctx context.Context) {
				require.NoError(t, ctx.Err())
				ran.Add(1)
			}))
		}
		gs[1].Wait()
		require.EqualValues(t, 10, ran.Load())
		v.NothingLeft(proving.GroupPath)
	})
}

func TestADoneMayComeFromAnywhere(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 4)
		gs[0].Add(6) // by whoever hands out the work
		gs[3].Add(1)
		v.Flush()
		var all sync.WaitGroup
		for _, g := range gs[1:3] {
			for range 2 {
				all.Go(g.Done)
			}
		}
		all.Wait()
		v.Remaining(gs[0], 3)
		gs[3].Add(-3) // its own, and two of another
		v.Remaining(gs[0], 0)
		gs[0].Wait()
		v.NothingLeft(proving.GroupPath)
	})
}

func TestMisuseOfAWaitGroupIsThatOfSync(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		gs := groups(v, 2)
		const negative = "sync: negative WaitGroup counter"
		require.PanicsWithValue(t, negative, gs[0].Done)
		require.ErrorIs(t, gs[0].DoneContext(context.Background()), zksync.ErrMisuse)
		gs[0].Add(2)
		require.PanicsWithValue(t, negative, func() { gs[1].Add(-3) })
		v.Remaining(gs[1], 0) // as with three calls of Done
		gs[0].Add(2)
		require.PanicsWithValue(t, negative, func() { gs[0].Add(-3) })
		v.Remaining(gs[1], 0)
		gs[0].Add(2)
		gs[1].Add(-2)
		gs[0].Add(0)
		require.PanicsWithValue(t, negative, gs[0].Done)
		v.NothingLeft(proving.GroupPath)

		nobody := zkwaitgroup.New(nil, proving.GroupPath)
		require.ErrorIs(t, nobody.WaitContext(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, nobody.AddContext(context.Background(), 1), zksync.ErrMisuse)
		require.Panics(t, func() { zkwaitgroup.New(v.Session(), "no/slash").Add(1) })
	})
}

func TestAClosedSessionEndsTheCallsOfAWaitGroup(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
		other.Add(1)
		w := proving.Waits(context.Background(), g.WaitContext)
		v.Quiet()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.Failed(w), zksync.ErrClosed)
		require.ErrorIs(t, g.AddContext(context.Background(), 1), zksync.ErrClosed)
		require.ErrorIs(t, g.DoneContext(context.Background()), zksync.ErrClosed)
		require.PanicsWithError(t, "zkwaitgroup: done "+proving.GroupPath+": session closed", g.Done)
		other.Done()
	})
}

func TestEveryCallOfAWaitGroupEndsWithItsContext(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(time.Minute))
		g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
		other.Add(3)
		g.Add(2)
		calls := map[string]func(context.Context) error{
			"add":     func(ctx context.Context) error { return g.AddContext(ctx, 1) },
			"done":    g.DoneContext,
			"wait":    g.WaitContext,
			"count":   func(ctx context.Context) error { _, err := g.Count(ctx); return err },
			"members": func(ctx context.Context) error { _, err := g.Members(ctx); return err },
			"go":      func(ctx context.Context) error { return g.GoContext(ctx, func(context.Context) { t.Error("ran") }) },
		}
		for op, f := range calls {
			heal := v.Server.Partition(s.ID())
			ctx, start := proving.Soon(t)
			err := f(ctx)
			require.LessOrEqual(t, time.Since(start), proving.Deadline+100*time.Millisecond, op)
			require.ErrorIs(t, err, context.DeadlineExceeded, op)
			heal()
			v.Later()
		}
		// Neither an Add whose context ended counts, nor is a Done forgotten.
		v.Remaining(other, 4)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, g.AddContext(ctx, 1), context.Canceled)
		if err := g.DoneContext(ctx); err != nil { // it may be written before anybody looks at ctx
			require.ErrorIs(t, err, context.Canceled)
		}
		v.Quiet()
		v.Remaining(other, 3)
		other.Add(-3)
		require.NoError(t, g.WaitContext(context.Background()))
		v.NothingLeft(proving.GroupPath)
	})
}

func TestTheLeastNumberOfAnAddIsTooMany(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		g := zkwaitgroup.New(v.Session(), proving.GroupPath)
		require.NoError(t, g.AddContext(context.Background(), 2))
		require.ErrorIs(t, g.AddContext(context.Background(), math.MinInt), zksync.ErrMisuse)
		n, err := g.Count(context.Background())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// Calls share a request, and the sum of their numbers is greater than any.
func TestNumbersThatAreTooGreatTogetherAreTooMany(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g := zkwaitgroup.New(s, proving.GroupPath)
		require.NoError(t, g.AddContext(t.Context(), 2))
		held := v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Hold().Nth(1))
		adds := proving.Waits(t.Context(), func(ctx context.Context) error { return g.AddContext(ctx, 1) })
		require.NoError(t, held.WaitHeld(t.Context()))
		var dones []*proving.Attempt
		for range 2 {
			dones = append(dones, proving.Waits(t.Context(), func(ctx context.Context) error { return g.AddContext(ctx, math.MinInt) }))
		}
		v.Quiet()
		held.Release()
		v.Passes(adds)
		for _, d := range dones {
			require.ErrorIs(t, v.Failed(d), zksync.ErrMisuse)
		}
		v.Remaining(g, 0)
		v.NothingLeft(proving.GroupPath)
	})
}
