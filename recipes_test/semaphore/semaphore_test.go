package semaphore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// sems opens n sessions and names the same semaphore through each.
func sems(v *proving.Env, n int, permits int64) []*zksemaphore.Weighted {
	v.T.Helper()
	all := make([]*zksemaphore.Weighted, n)
	for i := range all {
		all[i] = zksemaphore.NewWeighted(v.Session(), proving.SemPath, permits)
	}
	return all
}

// want starts a request for n permits.
func want(ctx context.Context, w *zksemaphore.Weighted, n int64) *proving.Attempt {
	return proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, n) })
}

// available checks how many permits are free; one that was released may not be yet, see left.
func available(v *proving.Env, want int64, w *zksemaphore.Weighted) {
	v.T.Helper()
	proving.Agrees(v, want, func() (int64, error) { return w.Available(context.Background()) }, "free permits")
}

func TestAcceptance065AcquireTakesAPermitAndReleaseReturnsIt(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 3)
		available(v, 3, w[1])
		require.NoError(t, w[0].Acquire(context.Background(), 1))
		available(v, 2, w[1])
		w[0].Release(1)
		available(v, 3, w[1])
	})
}

func TestAcceptance066TwoHoldTwoPermits(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 2)
		require.NoError(t, w[0].Acquire(context.Background(), 1))
		require.NoError(t, w[0].Acquire(context.Background(), 1))
		w[0].Release(1)
		require.NoError(t, w[1].Acquire(context.Background(), 1))
		available(v, 0, w[0])
		w[0].Release(1)
		w[1].Release(1)
		v.Queued(proving.SemQueue, 0)
	})
}

func TestAcceptance067WhenExhaustedTheNextWaits(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 1)
		for _, second := range w { // the same handle, and that of another session
			l := v.Granted(want(context.Background(), w[0], 1))
			next := want(context.Background(), second, 1)
			v.Settled(proving.SemQueue, 2)
			require.True(t, next.Pending())
			require.NoError(t, l.Unlock())
			require.NoError(t, v.Granted(next).Unlock())
			v.Queued(proving.SemQueue, 0)
		}
	})
}

func TestAcceptance068PermitsTakenTogetherMayBeReturnedOneByOne(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 2)
		require.NoError(t, w[0].Acquire(context.Background(), 2))
		next := want(context.Background(), w[1], 1)
		v.Settled(proving.SemQueue, 2)
		available(v, 0, w[1])
		w[0].Release(1)
		l := v.Granted(next)
		v.Settled(proving.SemQueue, 2)
		available(v, 0, w[1])
		require.NoError(t, l.Unlock())
		available(v, 1, w[1])
		w[0].Release(1)
		available(v, 2, w[1])
		v.Queued(proving.SemQueue, 0)
	})
}

func TestAcceptance069ARequestForTwoWaitsForBoth(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 3, 2)
		first, second := v.Granted(want(context.Background(), w[0], 1)), v.Granted(want(context.Background(), w[1], 1))
		both := want(context.Background(), w[2], 2)
		v.Settled(proving.SemQueue, 3)
		require.NoError(t, first.Unlock())
		v.Settled(proving.SemQueue, 2)
		require.True(t, both.Pending())
		require.NoError(t, second.Unlock())
		require.NoError(t, v.Granted(both).Unlock())
	})
}

func TestAcceptance070And071ReleaseOfTwoAndTry(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 2)
		require.True(t, w[0].TryAcquire(2))
		require.False(t, w[1].TryAcquire(1))
		_, err := w[1].TryAcquireLease(context.Background(), 1)
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		v.Queued(proving.SemQueue, 1)
		w[0].Release(2)
		v.Left(proving.SemQueue, 0, "released")
		require.True(t, w[1].TryAcquire(1))
		require.False(t, w[0].TryAcquire(2))
		require.False(t, w[0].TryAcquire(3), "more than there are")
		w[1].Release(1)
		v.Queued(proving.SemQueue, 0)
	})
}

func TestAcceptance072ADeadlineEndsTheWait(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 1)
		l := v.Granted(want(context.Background(), w[0], 1))
		for _, n := range []int64{1, 5} { // more than there are waits as well
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			start := time.Now()
			err := w[1].Acquire(ctx, n)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			v.Took(start, 300*time.Millisecond, "Acquire")
		}
		v.Queued(proving.SemQueue, 1)
		require.NoError(t, l.Unlock())
	})
}

func TestAcceptance073APermitThatComesFreeOutOfOrderWakesTheFirstWaiter(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		for _, older := range []bool{true, false} {
			w := sems(v, 4, 2)
			held := []*zksync.Lease{v.Granted(want(context.Background(), w[0], 1)), v.Granted(want(context.Background(), w[1], 1))}
			first := want(context.Background(), w[2], 1)
			v.Settled(proving.SemQueue, 3)
			second := want(context.Background(), w[3], 1)
			v.Settled(proving.SemQueue, 4)
			if !older {
				held[0], held[1] = held[1], held[0]
			}
			require.NoError(t, held[0].Unlock())
			l := v.Granted(first)
			v.Quiet()
			require.True(t, second.Pending())
			require.NoError(t, held[1].Unlock())
			require.NoError(t, v.Granted(second).Unlock())
			require.NoError(t, l.Unlock())
			v.Queued(proving.SemQueue, 0)
		}
	})
}

func TestAcceptance074And119BigRequestsNeitherDeadlockNorStarve(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 3, 5)
		var all sync.WaitGroup
		for _, s := range w[:2] {
			all.Go(func() {
				for range 10 {
					require.NoError(t, s.Do(context.Background(), 3, func(context.Context, *zksync.Lease) error { return nil }))
				}
			})
		}
		all.Wait()
		small := v.Granted(want(context.Background(), w[0], 1))
		big := want(context.Background(), w[1], 5)
		v.Settled(proving.SemQueue, 2)
		late := want(context.Background(), w[2], 1)
		v.Settled(proving.SemQueue, 3)
		require.True(t, late.Pending(), "it would fit, but the big one was first")
		require.NoError(t, small.Unlock())
		require.NoError(t, v.Granted(big).Unlock())
		require.NoError(t, v.Granted(late).Unlock())
	})
}

func TestAcceptance075OnlyOnesOwnPermitsCanBeReleased(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 3)
		require.NoError(t, w[0].Acquire(context.Background(), 2))
		require.PanicsWithValue(t, "semaphore: released more than held", func() { w[1].Release(1) })
		require.PanicsWithValue(t, "semaphore: released more than held", func() { w[0].Release(3) })
		available(v, 1, w[1])
		w[0].Release(2)
		available(v, 3, w[1])
	})
}

func TestAcceptance076TheDeathOfAHolderFreesExactlyItsPermits(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 3, 5)
		dying := v.Session()
		d := zksemaphore.NewWeighted(dying, proving.SemPath, 5)
		lost := v.Granted(want(context.Background(), d, 3))
		kept := v.Granted(want(context.Background(), w[0], 2))
		next := want(context.Background(), w[1], 3)
		v.Settled(proving.SemQueue, 3)
		v.Server.Expire(dying.ID())
		l := v.Granted(next)
		v.Awaits(lost.Done(), "the loss") // forced by an administrator, so it may come after the grant
		require.ErrorIs(t, lost.Err(), zksync.ErrLost)
		available(v, 0, w[2])
		require.NoError(t, l.Unlock())
		require.NoError(t, kept.Unlock())
	})
}

func TestAcceptance078ANumberThatContradictsTheStoredOneIsMisuse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 1, 3)[0]
		require.NoError(t, w.Acquire(context.Background(), 1))
		other := zksemaphore.NewWeighted(v.Session(), proving.SemPath, 4)
		err := other.Acquire(context.Background(), 1)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "number of permits of the semaphore is 3, not 4")
		require.NoError(t, w.Resize(context.Background(), 4))
		v.Flush()
		require.NoError(t, other.Acquire(context.Background(), 1), "that is what it has now")
		available(v, 2, w)
		other.Release(1)
		w.Release(1)
	})
}

func TestAResizeWakesWhoNowFitsAndTakesNothingAway(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 4, 2)
		held := v.Granted(want(context.Background(), w[0], 2))
		waits := want(context.Background(), w[1], 2)
		v.Settled(proving.SemQueue, 2)
		big := want(context.Background(), w[2], 6)
		v.Quiet()
		require.NoError(t, w[3].Resize(context.Background(), 4))
		l := v.Granted(waits)
		require.True(t, big.Pending())
		require.NoError(t, w[3].Resize(context.Background(), 6))
		v.Quiet()
		require.True(t, big.Pending())
		require.NoError(t, held.Unlock())
		require.NoError(t, l.Unlock())
		six := v.Granted(big)
		require.NoError(t, w[3].Resize(context.Background(), 1))
		require.True(t, six.Valid())
		available(v, 0, w[3])
		one := want(context.Background(), w[0], 1)
		v.Settled(proving.SemQueue, 2)
		require.True(t, one.Pending())
		require.NoError(t, six.Unlock())
		require.NoError(t, v.Granted(one).Unlock())
	})
}

func TestAcceptance115AcquireAndReleaseOfPermitsAreTwoRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.SemQueue, "") // no container, which servers remove when it is empty
		w := zksemaphore.NewWeighted(proving.Calm(v), proving.SemPath, 5)
		keep := v.Granted(want(context.Background(), w, 1)) // makes what is missing
		require.NoError(t, keep.Unlock())
		for _, n := range []int64{1, 3} {
			v.Costs(2, func() {
				require.NoError(t, w.Acquire(context.Background(), n))
				w.Release(n)
			})
		}
		require.NoError(t, w.Acquire(context.Background(), 5))
		other := zksemaphore.NewWeighted(proving.Calm(v), proving.SemPath, 5)
		require.False(t, other.TryAcquire(1)) // reads the configuration
		v.CostsAtMost(2, func() { require.False(t, other.TryAcquire(1)) })
		w.Release(5)
	})
}

// A waiter makes its entry, lists, and watches the nearest ones only. When one of these leaves, it lists again if
// it does not know of several others whether they are there; if it does not know of one, it watches that one.
func TestAcceptance115AWaiterForAPermitListsOnceWhereItDoesNotKnow(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.SemQueue, "")
		const permits, all = 2, 7
		w := make([]*zksemaphore.Weighted, all)
		for i := range w {
			w[i] = zksemaphore.NewWeighted(proving.Calm(v), proving.SemPath, permits)
			require.NoError(t, v.Granted(want(context.Background(), w[i], 1)).Unlock()) // learns the configuration
		}
		queued := make([]*proving.Attempt, all)
		for i := range w {
			cost := map[bool]int{true: 3, false: 2}[i >= permits] // the second one only lists
			if i == 0 {
				cost = 1
			}
			v.Costs(cost, func() {
				queued[i] = want(context.Background(), w[i], 1)
				v.Settled(proving.SemQueue, i+1)
			}, i)
		}
		// The first release is the grant to the next one. At each later one the next one lists, or watches the one that it does
		// not know of.
		for i, cost := range []int{1, 2, 2, 2, 2} {
			holder := v.Granted(queued[i])
			v.Costs(cost, func() {
				require.NoError(t, holder.Unlock())
				v.Granted(queued[i+permits])
			}, i)
		}
	})
}

// All know the number from the first use on; an entry that was made under an old number grants nothing.
func TestAnEntryIsNeverMadeUnderOldTerms(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 2)
		require.NoError(t, v.Granted(want(context.Background(), w[0], 2)).Unlock())
		require.NoError(t, w[1].Resize(context.Background(), 1))
		two := want(context.Background(), w[0], 2)
		v.Quiet()
		require.True(t, two.Pending())
		require.NoError(t, v.Granted(want(context.Background(), w[0], 1)).Unlock(), "it is in nobody's way")
		require.NoError(t, w[1].Resize(context.Background(), 3))
		require.NoError(t, v.Granted(two).Unlock())
	})
}
