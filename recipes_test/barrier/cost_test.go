package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// calmBarriers are parties whose sessions stay alive however busy the machine is, and who know the barrier's state.
func calmBarriers(v *proving.Env, n int, opts ...zksync.Option) []*zkbarrier.Barrier {
	v.T.Helper()
	all := make([]*zkbarrier.Barrier, n)
	for i := range all {
		all[i] = zkbarrier.NewBarrier(proving.Calm(v), proving.BarrierPath, n, opts...)
	}
	leave(v, awaitAll(context.Background(), all...)...)
	return all
}

func TestAcceptance115AnArrivalAtABarrierIsOneRequestAndTheWaitAnother(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		bs := calmBarriers(v, 10)
		var all []*awaiting
		for _, b := range bs[:9] {
			// A busy machine may take longer than the second after which a party looks after others too.
			got := v.Counted(func() {
				all = append(all, await(context.Background(), b))
				if !v.Virtual {
					inTime(v, func() bool { return len(v.Children(proving.BarrierPath+"/parties-1")) == len(all) })
				}
			})
			if v.Virtual {
				require.Equal(t, 2, got)
			}
		}
		last := await(context.Background(), bs[9])
		leave(v, append(all, last)...)
	})
}

// meet lets the last one come when all others wait.
func meet(v *proving.Env, bs []*zkbarrier.Barrier) {
	v.T.Helper()
	all := awaitAll(context.Background(), bs[:len(bs)-1]...)
	v.Quiet()
	leave(v, append(all, await(context.Background(), bs[len(bs)-1]))...)
}

// Ten arrivals, nine waits, nine looks at how it ended, and the last one's list and its word that all may leave, which also cleans up.
func TestAcceptance115AGenerationOfTenPartiesIsThirtyRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		bs := calmBarriers(v, 10)
		for range 3 {
			got := v.Counted(func() { meet(v, bs) })
			if v.Virtual {
				require.Equal(t, 10+9+2+9, got)
			}
			// On a busy machine each may have begun to look after another.
			require.GreaterOrEqual(t, got, 10+9+2+9)
			require.LessOrEqual(t, got, 10+9+2+9+3*9)
			// In a rush some are told to leave before they wait, and ask why their node is gone.
			got = v.Counted(func() { leave(v, awaitAll(context.Background(), bs...)...) })
			require.GreaterOrEqual(t, got, 10+9+2+9)
			require.LessOrEqual(t, got, 10+9+2+9+3*9)
		}
	})
}

func TestAcceptance115AnActionOfABarrierCostsNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		action := zkbarrier.WithAction(func(context.Context) error { return nil })
		bs := calmBarriers(v, 10, action)
		v.Costs(30, func() { meet(v, bs) })
	})
}

// Whoever waits for long looks once who is there, and watches one of them. After that nobody asks anything.
func TestAcceptance115ALongWaitAtABarrierCostsNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := calmBarriers(v, 10)
		all := awaitAll(context.Background(), bs[:9]...)
		v.Quiet()
		v.Costs(2*9+1, func() { time.Sleep(2 * time.Second) })
		v.Costs(0, func() { time.Sleep(time.Hour) })
		lists := v.Server.RequestsBy(zktest.GetChildren)
		leave(v, append(all, await(context.Background(), bs[9]))...)
		require.Equal(t, 1, v.Server.RequestsBy(zktest.GetChildren)-lists, "nobody looks who else was there")
	})
}

// An arrival wakes nobody but, after a while, the first one; the end wakes each of those who wait.
func TestABarrierWakesNobodyBeforeItsTime(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := calmBarriers(v, 10)
		events := func(f func()) int {
			v.Quiet()
			before := v.Server.Notifications()
			f()
			v.Quiet()
			return v.Server.Notifications() - before
		}
		var all []*awaiting
		require.Zero(t, events(func() { all = awaitAll(context.Background(), bs[:7]...) }))
		require.Zero(t, events(func() { time.Sleep(time.Minute) }))
		require.Equal(t, 1, events(func() { all = append(all, await(context.Background(), bs[7])) }))
		time.Sleep(time.Minute)
		require.Equal(t, 1, events(func() { all = append(all, await(context.Background(), bs[8])) }))
		// Each hears of itself, of the end of the generation, and of its neighbor.
		require.LessOrEqual(t, events(func() { leave(v, append(all, await(context.Background(), bs[9]))...) }), 3*9+1)
	})
}

// A party of an earlier generation that was away asks once, and is in.
func TestAPartyThatWasAwayForSomeGenerationsFindsItsWay(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := calmBarriers(v, 3)
		away := zkbarrier.NewBarrier(proving.Calm(v), proving.BarrierPath, 3)
		leave(v, await(context.Background(), away), await(context.Background(), bs[0]), await(context.Background(), bs[1]))
		for range 5 {
			leave(v, awaitAll(context.Background(), bs...)...)
		}
		var a *awaiting
		// Refused; then a look for the own node behind a sync; the state, behind another; and the two of an arrival.
		v.Costs(7, func() { a = await(context.Background(), away) })
		leave(v, a, await(context.Background(), bs[0]), await(context.Background(), bs[1]))
	})
}
