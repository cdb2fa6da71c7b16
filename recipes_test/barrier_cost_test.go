package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// calmBarriers are parties whose sessions stay alive however busy the machine is, and who know the barrier's state.
func (v *env) calmBarriers(n int, opts ...zksync.Option) []*zkbarrier.Barrier {
	v.t.Helper()
	all := make([]*zkbarrier.Barrier, n)
	for i := range all {
		all[i] = zkbarrier.NewBarrier(calm(v), barrierPath, n, opts...)
	}
	v.leave(awaitAll(context.Background(), all...)...)
	return all
}

func TestAcceptance115AnArrivalAtABarrierIsOneRequestAndTheWaitAnother(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		bs := v.calmBarriers(10)
		var all []*awaiting
		for _, b := range bs[:9] {
			// A busy machine may take longer than the second after which a party looks after others too.
			got := v.counted(func() {
				all = append(all, await(context.Background(), b))
				if !v.virtual {
					v.inTime(func() bool { return len(v.children(barrierPath+"/parties-1")) == len(all) })
				}
			})
			if v.virtual {
				require.Equal(t, 2, got)
			}
		}
		last := await(context.Background(), bs[9])
		v.leave(append(all, last)...)
	})
}

// meet lets the last one come when all others wait.
func (v *env) meet(bs []*zkbarrier.Barrier) {
	v.t.Helper()
	all := awaitAll(context.Background(), bs[:len(bs)-1]...)
	v.quiet()
	v.leave(append(all, await(context.Background(), bs[len(bs)-1]))...)
}

// Ten arrivals, nine waits, nine looks at how it ended, and the last one's list and its word that all may leave, which also cleans up.
func TestAcceptance115AGenerationOfTenPartiesIsThirtyRequests(t *testing.T) {
	for _, opts := range [][]zksync.Option{nil, {zkbarrier.Tolerant()}} {
		eachAlone(t, func(t *testing.T, v *env) {
			bs := v.calmBarriers(10, opts...)
			for range 3 {
				got := v.counted(func() { v.meet(bs) })
				if v.virtual {
					require.Equal(t, 10+9+2+9, got)
				}
				// On a busy machine each may have begun to look after another.
				require.GreaterOrEqual(t, got, 10+9+2+9)
				require.LessOrEqual(t, got, 10+9+2+9+3*9)
				// In a rush some are told to leave before they wait, and ask why their node is gone.
				got = v.counted(func() { v.leave(awaitAll(context.Background(), bs...)...) })
				require.GreaterOrEqual(t, got, 10+9+2+9)
				require.LessOrEqual(t, got, 10+9+2+9+3*9)
			}
		})
	}
}

func TestAcceptance115AnActionOfABarrierCostsNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		action := zkbarrier.WithAction(func(context.Context) error { return nil })
		bs := v.calmBarriers(10, action)
		v.costs(30, func() { v.meet(bs) })
	})
}

// Whoever waits for long looks once who is there, and watches one of them. After that nobody asks anything.
func TestAcceptance115ALongWaitAtABarrierCostsNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.calmBarriers(10)
		all := awaitAll(context.Background(), bs[:9]...)
		v.quiet()
		v.costs(2*9+1, func() { time.Sleep(2 * time.Second) })
		v.costs(0, func() { time.Sleep(time.Hour) })
		lists := v.srv.RequestsBy(zktest.GetChildren)
		v.leave(append(all, await(context.Background(), bs[9]))...)
		require.Equal(t, 1, v.srv.RequestsBy(zktest.GetChildren)-lists, "nobody looks who else was there")
	})
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.calmBarriers(10, zkbarrier.Tolerant())
		all := awaitAll(context.Background(), bs[:9]...)
		v.quiet()
		v.costs(0, func() { time.Sleep(time.Hour) })
		v.leave(append(all, await(context.Background(), bs[9]))...)
	})
}

// An arrival wakes nobody but, after a while, the first one; the end wakes each of those who wait.
func TestABarrierWakesNobodyBeforeItsTime(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.calmBarriers(10)
		events := func(f func()) int {
			v.quiet()
			before := v.srv.Notifications()
			f()
			v.quiet()
			return v.srv.Notifications() - before
		}
		var all []*awaiting
		require.Zero(t, events(func() { all = awaitAll(context.Background(), bs[:7]...) }))
		require.Zero(t, events(func() { time.Sleep(time.Minute) }))
		require.Equal(t, 1, events(func() { all = append(all, await(context.Background(), bs[7])) }))
		time.Sleep(time.Minute)
		require.Equal(t, 1, events(func() { all = append(all, await(context.Background(), bs[8])) }))
		// Each hears of itself, of the end of the generation, and of its neighbor.
		require.LessOrEqual(t, events(func() { v.leave(append(all, await(context.Background(), bs[9]))...) }), 3*9+1)
	})
}

// A party of an earlier generation that was away asks once, and is in.
func TestAPartyThatWasAwayForSomeGenerationsFindsItsWay(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.calmBarriers(3)
		away := zkbarrier.NewBarrier(calm(v), barrierPath, 3)
		v.leave(await(context.Background(), away), await(context.Background(), bs[0]), await(context.Background(), bs[1]))
		for range 5 {
			v.leave(awaitAll(context.Background(), bs...)...)
		}
		var a *awaiting
		// Refused; then a look for the own node behind a sync; the state, behind another; and the two of an arrival.
		v.costs(7, func() { a = await(context.Background(), away) })
		v.leave(a, await(context.Background(), bs[0]), await(context.Background(), bs[1]))
	})
}
