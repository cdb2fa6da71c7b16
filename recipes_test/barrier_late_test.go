package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance064ASlowWaiterOfACompleteGenerationIsNeverToldThatItBroke(t *testing.T) {
	eachKind(t, func(t *testing.T, v *env, opts ...zksync.Option) {
		s := v.session(zksync.WithTimeout(v.span(20*time.Second, lifetime)))
		slow := zkbarrier.NewBarrier(s, barrierPath, 2, opts...)
		bs := v.barriers(2, opts...)
		a := await(context.Background(), slow)
		v.gathered(bs[0], 1)
		heal := v.partition(s)
		_, err := bs[0].Await(context.Background())
		require.NoError(t, err)
		for range 3 { // it sleeps through later generations, one of which breaks
			v.leave(awaitAll(context.Background(), bs...)...)
		}
		other := await(context.Background(), bs[0])
		v.gathered(bs[1], 1)
		require.NoError(t, bs[1].Reset(context.Background()))
		v.brokenFor(other)
		require.True(t, a.pending())
		heal()
		v.awaits(a.done, "Await to return")
		require.NoError(t, a.err)
		require.Equal(t, 1, a.index)
	})
}

func TestAcceptance126AnAwaitSurvivesAReconnect(t *testing.T) {
	for name, outage := range away {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				s := v.session(zksync.WithTimeout(v.span(8*time.Second, 16*time.Second)))
				bs := v.barriers(3)
				a := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 3))
				v.gathered(bs[0], 1)
				b := await(context.Background(), bs[0])
				v.gathered(bs[1], 2)
				outage(t, v, s)
				v.connected(s)
				v.quiet()
				require.True(t, a.pending() && b.pending(), "%v %v", a.err, b.err)
				v.leave(a, b, await(context.Background(), bs[1]))
			})
		})
	}
}

// tripped has a party cut off while its generation is completed, until its session is over.
func (v *env) tripped(later func(bs []*zkbarrier.Barrier), opts ...zksync.Option) *awaiting {
	v.t.Helper()
	s, kill := v.mortal()
	bs := v.barriers(2, opts...)
	slow := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 2, opts...))
	v.gathered(bs[0], 1)
	heal := kill()
	_, err := bs[0].Await(context.Background())
	require.NoError(v.t, err)
	later(bs)
	pause(v.t, v, 2*dying)
	require.True(v.t, slow.pending(), "%v", slow.err)
	heal()
	v.awaits(slow.done, "Await to return")
	return slow
}

func TestAcceptance064APartyThatLostItsSessionIsToldThatItsGenerationWasComplete(t *testing.T) {
	for _, later := range []int{0, 10} {
		t.Run(fmt.Sprint(later, " generations later"), func(t *testing.T) {
			eachKind(t, func(t *testing.T, v *env, opts ...zksync.Option) {
				a := v.tripped(func(bs []*zkbarrier.Barrier) {
					for i := range later {
						if i%3 == 0 {
							require.NoError(t, bs[0].Reset(context.Background()))
						}
						v.leave(awaitAll(context.Background(), bs...)...)
					}
				}, opts...)
				require.NoError(t, a.err)
				require.Equal(t, 1, a.index)
			})
		})
	}
}

func TestAPartyThatLostItsSessionLongAgoIsToldThatNobodyKnows(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		a := v.tripped(func(bs []*zkbarrier.Barrier) {
			for range 40 {
				v.leave(awaitAll(context.Background(), bs...)...)
			}
		})
		require.ErrorIs(t, a.err, zksync.ErrSessionExpired)
		require.NotErrorIs(t, a.err, zksync.ErrBroken)
		require.Equal(t, -1, a.index)
		require.Len(t, v.children(barrierPath), 2+32, "the ends of 32 generations")
	})
}

// As long as its session lives, its own node tells a party whether it was let go.
func TestAcceptance064ASlowWaiterIsToldThoughTheRecordOfItsGenerationIsGone(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(time.Minute))
		bs := v.barriers(2)
		slow := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 2))
		v.gathered(bs[0], 1)
		heal := v.cutOff(s)
		_, err := bs[0].Await(context.Background())
		require.NoError(t, err)
		for range 40 {
			v.leave(awaitAll(context.Background(), bs...)...)
		}
		heal()
		v.awaits(slow.done, "Await to return")
		require.NoError(t, slow.err)
		require.Equal(t, 1, slow.index)

		slow = await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 2))
		v.gathered(bs[0], 1)
		heal = v.cutOff(s)
		require.NoError(t, bs[0].Reset(context.Background()))
		for range 40 {
			v.leave(awaitAll(context.Background(), bs...)...)
		}
		heal()
		v.brokenFor(slow)
	})
}

// A party that cannot be told yet is not one that waits.
func TestNobodyWaitsAtABrokenBarrier(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(v.span(20*time.Second, lifetime)))
		bs := v.barriers(3)
		slow := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 3))
		v.gathered(bs[0], 1)
		heal := v.partition(s)
		ctx, cancel := context.WithTimeout(context.Background(), v.ample(deadline)) // to arrive in, too
		defer cancel()
		_, err := bs[0].Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.broken(bs[1], true)
		v.waitingAt(bs[1], 0)
		heal()
		v.brokenFor(slow)
		v.emptied()
	})
}

// All had come when its context ended; that news was on its way.
func TestAPartyWhoseContextEndsAtThatVeryMomentLeavesWithTheOthers(t *testing.T) {
	for _, opts := range [][]zksync.Option{nil, {zkbarrier.Tolerant()}} {
		inProcess(t, func(t *testing.T, v *env) {
			s := v.session()
			bs := v.barriers(2, opts...)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			a := await(ctx, zkbarrier.NewBarrier(s, barrierPath, 2, opts...))
			v.gathered(bs[0], 1)
			v.srv.Delay(s.ID(), 0, 10*time.Millisecond)
			last := await(context.Background(), bs[0])
			time.Sleep(5 * time.Millisecond)
			require.True(t, a.pending(), "%v", a.err)
			cancel()
			v.leave(a, last)
			v.broken(bs[1], false)
			v.emptied()
		})
	}
}

// The transaction in which all leave may be as large as the servers accept.
func TestABarrierOfVeryManyParties(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		sizes := []int{1000, 2000}
		if v.virtual { // where there is no limit, but every request is made by one processor
			sizes = []int{100}
		}
		for _, parties := range sizes {
			path := fmt.Sprint(barrierPath, parties)
			var all []*awaiting
			for range 4 {
				b := zkbarrier.NewBarrier(v.session(zksync.WithTimeout(30*time.Second)), path, parties)
				for range parties / 4 {
					all = append(all, await(context.Background(), b))
				}
			}
			v.leave(all...)
			v.quiet()
			v.queued(path+"/parties-1", 0)
		}
	})
}
