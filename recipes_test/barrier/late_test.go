package barrier_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAcceptance064ASlowWaiterOfACompleteGenerationIsNeverToldThatItBroke(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(v.Span(20*time.Second, proving.Lifetime)))
		slow := zkbarrier.NewBarrier(s, proving.BarrierPath, 2)
		bs := barriers(v, 2)
		a := await(context.Background(), slow)
		gathered(v, bs[0], 1)
		heal := v.Partition(s)
		_, err := bs[0].Await(context.Background())
		require.NoError(t, err)
		for range 3 { // it sleeps through later generations, one of which breaks
			leave(v, awaitAll(context.Background(), bs...)...)
		}
		other := await(context.Background(), bs[0])
		gathered(v, bs[1], 1)
		require.NoError(t, bs[1].Reset(context.Background()))
		brokenFor(v, other)
		require.True(t, a.pending())
		heal()
		v.Awaits(a.done, "Await to return")
		require.NoError(t, a.err)
		require.Equal(t, 1, a.index)
	})
}

func TestAcceptance126AnAwaitSurvivesAReconnect(t *testing.T) {
	proving.Together(t)
	for name, outage := range proving.Away {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				s := v.Session(zksync.WithTimeout(v.Span(8*time.Second, 16*time.Second)))
				bs := barriers(v, 3)
				a := await(context.Background(), zkbarrier.NewBarrier(s, proving.BarrierPath, 3))
				gathered(v, bs[0], 1)
				b := await(context.Background(), bs[0])
				gathered(v, bs[1], 2)
				outage(t, v, s)
				v.Connected(s)
				v.Quiet()
				require.True(t, a.pending() && b.pending(), "%v %v", a.err, b.err)
				leave(v, a, b, await(context.Background(), bs[1]))
			})
		})
	}
}

// tripped has a party cut off while its generation is completed, until its session is over.
func tripped(v *proving.Env, later func(bs []*zkbarrier.Barrier)) *awaiting {
	v.T.Helper()
	s, kill := mortal(v)
	bs := barriers(v, 2)
	slow := await(context.Background(), zkbarrier.NewBarrier(s, proving.BarrierPath, 2))
	gathered(v, bs[0], 1)
	heal := kill()
	_, err := bs[0].Await(context.Background())
	require.NoError(v.T, err)
	later(bs)
	proving.Pause(v.T, v, 2*dying)
	require.True(v.T, slow.pending(), "%v", slow.err)
	heal()
	v.Awaits(slow.done, "Await to return")
	return slow
}

func TestAcceptance064APartyThatLostItsSessionIsToldThatItsGenerationWasComplete(t *testing.T) {
	proving.Together(t)
	for _, later := range []int{0, 10} {
		t.Run(fmt.Sprint(later, " generations later"), func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				a := tripped(v, func(bs []*zkbarrier.Barrier) {
					for i := range later {
						if i%3 == 0 {
							require.NoError(t, bs[0].Reset(context.Background()))
						}
						leave(v, awaitAll(context.Background(), bs...)...)
					}
				})
				require.NoError(t, a.err)
				require.Equal(t, 1, a.index)
			})
		})
	}
}

func TestAPartyThatLostItsSessionLongAgoIsToldThatNobodyKnows(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a := tripped(v, func(bs []*zkbarrier.Barrier) {
			for range 40 {
				leave(v, awaitAll(context.Background(), bs...)...)
			}
		})
		require.ErrorIs(t, a.err, zksync.ErrSessionExpired)
		require.NotErrorIs(t, a.err, zksync.ErrBroken)
		require.Equal(t, -1, a.index)
		require.Len(t, v.Children(proving.BarrierPath), 2+32, "the ends of 32 generations")
	})
}

// As long as its session lives, its own node tells a party whether it was let go.
func TestAcceptance064ASlowWaiterIsToldThoughTheRecordOfItsGenerationIsGone(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(time.Minute))
		bs := barriers(v, 2)
		slow := await(context.Background(), zkbarrier.NewBarrier(s, proving.BarrierPath, 2))
		gathered(v, bs[0], 1)
		heal := v.CutOff(s)
		_, err := bs[0].Await(context.Background())
		require.NoError(t, err)
		for range 40 {
			leave(v, awaitAll(context.Background(), bs...)...)
		}
		heal()
		v.Awaits(slow.done, "Await to return")
		require.NoError(t, slow.err)
		require.Equal(t, 1, slow.index)

		slow = await(context.Background(), zkbarrier.NewBarrier(s, proving.BarrierPath, 2))
		gathered(v, bs[0], 1)
		heal = v.CutOff(s)
		require.NoError(t, bs[0].Reset(context.Background()))
		for range 40 {
			leave(v, awaitAll(context.Background(), bs...)...)
		}
		heal()
		brokenFor(v, slow)
	})
}

// A party that cannot be told yet is not one that waits.
func TestNobodyWaitsAtABrokenBarrier(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(v.Span(20*time.Second, proving.Lifetime)))
		bs := barriers(v, 3)
		slow := await(context.Background(), zkbarrier.NewBarrier(s, proving.BarrierPath, 3))
		gathered(v, bs[0], 1)
		heal := v.Partition(s)
		ctx, cancel := context.WithTimeout(context.Background(), v.Ample(proving.Deadline)) // to arrive in, too
		defer cancel()
		_, err := bs[0].Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		broken(v, bs[1], true)
		waitingAt(v, bs[1], 0)
		heal()
		brokenFor(v, slow)
		emptied(v)
	})
}

// All had come when its context ended; the event was on its way.
func TestAPartyWhoseContextEndsAtThatVeryMomentLeavesWithTheOthers(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		bs := barriers(v, 2)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a := await(ctx, zkbarrier.NewBarrier(s, proving.BarrierPath, 2))
		gathered(v, bs[0], 1)
		v.Server.Delay(s.ID(), 0, 10*time.Millisecond)
		last := await(context.Background(), bs[0])
		time.Sleep(5 * time.Millisecond)
		require.True(t, a.pending(), "%v", a.err)
		cancel()
		leave(v, a, last)
		broken(v, bs[1], false)
		emptied(v)
	})
}

// The transaction in which all leave may be as large as the servers accept.
func TestABarrierOfVeryManyParties(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		sizes := []int{1000, 2000}
		if v.Virtual { // where there is no limit, but every request is made by one processor
			sizes = []int{100}
		}
		for _, parties := range sizes {
			path := fmt.Sprint(proving.BarrierPath, parties)
			var all []*awaiting
			for range 4 {
				b := zkbarrier.NewBarrier(v.Session(zksync.WithTimeout(30*time.Second)), path, parties)
				for range parties / 4 {
					all = append(all, await(context.Background(), b))
				}
			}
			leave(v, all...)
			v.Quiet()
			v.Queued(path+"/parties-1", 0)
		}
	})
}

// Likewise, but the node is that of a party, which has arrived again by then. It is the same party, and its nodes have one
// name: a strict barrier would take the removal of one for a death.
func TestAnArrivalThatIsAppliedWhenTheSessionComesBackBreaksNoStrictBarrier(t *testing.T) {
	for _, others := range []string{"come before it", "come behind it", "are told that it gave up"} {
		t.Run("the others "+others, func(t *testing.T) {
			proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				bs := []*zkbarrier.Barrier{zkbarrier.NewBarrier(s, proving.BarrierPath, 3)}
				for range 2 {
					bs = append(bs, zkbarrier.NewBarrier(e.SessionAt(t, 2), proving.BarrierPath, 3))
				}
				for _, a := range awaitAll(t.Context(), bs...) {
					<-a.done
					require.NoError(t, a.err)
				}
				late := e.Intercept(zktest.On(zktest.Create, proving.BarrierPath+"/*/*").Nth(1).Hold().Queued())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				all := awaitAll(ctx, bs[0])
				require.NoError(t, late.WaitHeld(t.Context()))
				e.Disconnect(s.ID())
				time.Sleep(100 * time.Millisecond)
				require.Equal(t, 1, e.At(s.ID()), "it looked there in vain, and has arrived anew")
				if others != "come behind it" {
					all = append(all, await(t.Context(), bs[1]))
				}
				for range 2 {
					time.Sleep(100 * time.Millisecond)
					e.Disconnect(s.ID())
				}
				time.Sleep(100 * time.Millisecond)
				require.Equal(t, 0, e.At(s.ID()))
				late.Release()
				time.Sleep(3 * time.Second)
				if others == "are told that it gave up" {
					cancel()
					<-all[0].done
					<-all[1].done
					require.ErrorIs(t, all[0].err, context.Canceled)
					require.ErrorIs(t, all[1].err, zksync.ErrBroken)
					synctest.Wait()
					require.ElementsMatch(t, []string{"ended-0", "ended-1"}, e.Server(2).Children(proving.BarrierPath), "nothing of it is left")
					return
				}
				for len(all) < 3 {
					all = append(all, await(t.Context(), bs[len(all)]))
				}
				for _, a := range all {
					<-a.done
					require.NoError(t, a.err)
				}
			})
		})
	}
}

// The party knows an older generation, which a Reset has ended. Its first request is lost.
func TestAPartyThatComesAfterAResetIsInTheNextGeneration(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		late := zkbarrier.NewBarrier(s, proving.BarrierPath, 2)
		other := barriers(v, 2)[0]
		leave(v, await(context.Background(), late), await(context.Background(), other))
		require.NoError(t, other.Reset(t.Context()))
		lost := v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Times(1).LoseRequest())
		a := await(context.Background(), late)
		gathered(v, other, 1)
		require.Equal(t, 1, lost.Fired())
		leave(v, a, await(context.Background(), other))
	})
}
