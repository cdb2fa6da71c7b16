package recipes_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

const groupPath = "/groups/a"

func (v *env) groups(n int) []*zkwaitgroup.WaitGroup {
	v.t.Helper()
	all := make([]*zkwaitgroup.WaitGroup, n)
	for i := range all {
		all[i] = zkwaitgroup.New(v.session(), groupPath)
	}
	return all
}

// nothingLeft checks that a round has left no node.
func (v *env) nothingLeft(dir string, names ...string) {
	v.t.Helper()
	v.quiet()
	if !v.virtual { // the reaper, which tries again, may be between two attempts
		v.queued(dir, len(names))
	}
	require.ElementsMatch(v.t, names, v.children(dir))
}

func TestAWaitGroupWaitsForAllOfAllProcesses(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		gs := v.groups(3)
		gs[0].Add(2)
		gs[1].Add(1)
		v.remaining(gs[2], 3)
		waiters := []*attempt{waits(context.Background(), gs[0].WaitContext), waits(context.Background(), gs[2].WaitContext)}
		mirror := make(chan struct{})
		go func() { gs[1].Wait(); close(mirror) }()
		gs[0].Done()
		gs[1].Done()
		v.quiet()
		require.True(t, waiters[0].pending() && waiters[1].pending())
		v.remaining(gs[1], 1)
		require.NoError(t, gs[0].DoneContext(context.Background()))
		for _, w := range waiters {
			v.passes(w)
		}
		v.awaits(mirror, "Wait")
		v.nothingLeft(groupPath)
		start := time.Now()
		gs[1].Wait()
		require.NoError(t, gs[2].WaitContext(context.Background()))
		v.atOnce(start, "Wait for nobody")
	})
}

func TestMembersMayBeAddedWhileOthersWait(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		gs := v.groups(3)
		gs[0].Add(1)
		v.flush()
		w := waits(context.Background(), gs[2].WaitContext)
		v.quiet()
		for range 3 {
			gs[1].Add(1)
			gs[0].Done()
			v.quiet()
			require.True(t, w.pending())
			gs[0].Add(1)
			gs[1].Done()
		}
		gs[0].Done()
		v.passes(w)
		v.remaining(gs[1], 0)
	})
}

func TestGoRunsAMemberOfTheGroup(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		gs := v.groups(2)
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
		v.nothingLeft(groupPath)
	})
}

func TestADoneMayComeFromAnywhere(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		gs := v.groups(4)
		gs[0].Add(6) // by whoever hands out the work
		gs[3].Add(1)
		v.flush()
		var all sync.WaitGroup
		for _, g := range gs[1:3] {
			for range 2 {
				all.Go(g.Done)
			}
		}
		all.Wait()
		v.remaining(gs[0], 3)
		gs[3].Add(-3) // its own, and two of another
		v.remaining(gs[0], 0)
		gs[0].Wait()
		v.nothingLeft(groupPath)
	})
}

func TestMisuseOfAWaitGroupIsThatOfSync(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		gs := v.groups(2)
		const negative = "zkwaitgroup: negative WaitGroup counter"
		require.PanicsWithValue(t, negative, gs[0].Done)
		require.ErrorIs(t, gs[0].DoneContext(context.Background()), zksync.ErrMisuse)
		gs[0].Add(2)
		require.PanicsWithValue(t, negative, func() { gs[1].Add(-3) })
		require.PanicsWithValue(t, negative, func() { gs[0].Add(-3) })
		v.remaining(gs[1], 2)
		gs[1].Add(-2)
		gs[0].Add(0)
		require.PanicsWithValue(t, negative, gs[0].Done)
		v.nothingLeft(groupPath)

		nobody := zkwaitgroup.New(nil, groupPath)
		require.ErrorIs(t, nobody.WaitContext(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, nobody.AddContext(context.Background(), 1), zksync.ErrMisuse)
		require.Panics(t, func() { zkwaitgroup.New(v.session(), "no/slash").Add(1) })
	})
}

func TestAClosedSessionEndsTheCallsOfAWaitGroup(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		g, other := zkwaitgroup.New(s, groupPath), v.groups(1)[0]
		other.Add(1)
		w := waits(context.Background(), g.WaitContext)
		v.quiet()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.failed(w), zksync.ErrClosed)
		require.ErrorIs(t, g.AddContext(context.Background(), 1), zksync.ErrClosed)
		require.ErrorIs(t, g.DoneContext(context.Background()), zksync.ErrClosed)
		require.PanicsWithError(t, "zksync: done "+groupPath+": session closed", g.Done)
		other.Done()
	})
}

func TestEveryCallOfAWaitGroupEndsWithItsContext(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(time.Minute))
		g, other := zkwaitgroup.New(s, groupPath), v.groups(1)[0]
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
			heal := v.srv.Partition(s.ID())
			ctx, start := soon(t)
			err := f(ctx)
			require.LessOrEqual(t, time.Since(start), deadline+100*time.Millisecond, op)
			require.ErrorIs(t, err, context.DeadlineExceeded, op)
			heal()
			v.later()
		}
		// Neither an Add whose context ended counts, nor is a Done forgotten.
		v.remaining(other, 4)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, g.AddContext(ctx, 1), context.Canceled)
		if err := g.DoneContext(ctx); err != nil { // it may be written before anybody looks at ctx
			require.ErrorIs(t, err, context.Canceled)
		}
		v.quiet()
		v.remaining(other, 3)
		other.Add(-3)
		require.NoError(t, g.WaitContext(context.Background()))
		v.nothingLeft(groupPath)
	})
}
