package barrier_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	doublePath    = "/doubles/a"
	doubleParties = doublePath + "/parties"
)

// doubles opens count sessions and names the same double barrier of n parties through each.
func doubles(v *proving.Env, count, n int) []*zkbarrier.DoubleBarrier {
	v.T.Helper()
	all := make([]*zkbarrier.DoubleBarrier, count)
	for i := range all {
		all[i] = zkbarrier.NewDoubleBarrier(v.Session(), doublePath, n)
	}
	return all
}

func enters(bs ...*zkbarrier.DoubleBarrier) []*proving.Attempt {
	return eachOf(bs, (*zkbarrier.DoubleBarrier).Enter)
}

func leaves(bs ...*zkbarrier.DoubleBarrier) []*proving.Attempt {
	return eachOf(bs, (*zkbarrier.DoubleBarrier).Leave)
}

func eachOf(bs []*zkbarrier.DoubleBarrier, f func(*zkbarrier.DoubleBarrier, context.Context) error) []*proving.Attempt {
	var all []*proving.Attempt
	for _, b := range bs {
		all = append(all, proving.Waits(context.Background(), func(ctx context.Context) error { return f(b, ctx) }))
	}
	return all
}

func allPass(v *proving.Env, all []*proving.Attempt) {
	v.T.Helper()
	for _, a := range all {
		v.Passes(a)
	}
}

// nonePasses checks that all of them wait, also after they had time to look again.
func nonePasses(v *proving.Env, all []*proving.Attempt) {
	v.T.Helper()
	v.Quiet()
	if v.Virtual {
		v.PassAWhile()
	}
	for i, a := range all {
		require.True(v.T, a.Pending(), "%d has passed: %v", i, a.Err)
	}
}

// round has all of them enter and leave, one after the other.
func round(v *proving.Env, bs ...*zkbarrier.DoubleBarrier) {
	v.T.Helper()
	if !v.Virtual { // the node of one whose Enter has failed may go a while later, and counts until then
		v.Queued(doubleParties, 0)
	}
	for _, f := range []func(...*zkbarrier.DoubleBarrier) []*proving.Attempt{enters, leaves} {
		first := f(bs[:len(bs)-1]...)
		nonePasses(v, first)
		allPass(v, append(first, f(bs[len(bs)-1])...))
	}
	v.Queued(doubleParties, 0)
}

func TestPartiesEnterTogetherAndLeaveTogetherRoundAfterRound(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 4, 4)
		for range 3 {
			round(v, bs...)
			slices.Reverse(bs)
		}
	})
}

func TestPartiesMayShareASession(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		var bs []*zkbarrier.DoubleBarrier
		for range 3 {
			bs = append(bs, zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		}
		round(v, bs...)
		round(v, bs...)
	})
}

func TestADoubleBarrierOfOnePasses(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		b := doubles(v, 1, 1)[0]
		for range 3 {
			require.NoError(t, b.Enter(context.Background()))
			require.NoError(t, b.Leave(context.Background()))
		}
	})
}

func TestWhoeverComesLateIsInTheNextRound(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 5, 2)
		allPass(v, enters(bs[:2]...))
		late := enters(bs[2:]...)
		nonePasses(v, late)
		allPass(v, leaves(bs[:2]...))
		v.Eventually(func() bool { return !late[0].Pending() || !late[1].Pending() || !late[2].Pending() }, "no next round")
		v.Quiet()
		in := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return late[i].Pending() })
		require.Len(t, in, 2, "of three who wait")
		for _, i := range in {
			v.Passes(late[i])
		}
		allPass(v, leaves(bs[2+in[0]], bs[2+in[1]]))
		out := 3 - in[0] - in[1]
		allPass(v, append(enters(bs[0]), late[out]))
		allPass(v, leaves(bs[0], bs[2+out]))
	})
}

func TestAcceptance125APartyThatGaveUpDoesNotCount(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 3, 2)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, bs[0].Enter(ctx), context.DeadlineExceeded)
		v.Took(start, 300*time.Millisecond, "Enter")
		if !v.Virtual {
			v.Quiet() // a server that stands still may make the node yet
		}
		v.Left(doubleParties, 0, "it gave up")
		one := enters(bs[1])
		nonePasses(v, one)
		allPass(v, append(one, enters(bs[2])...))
		allPass(v, leaves(bs[1:]...))
		require.ErrorIs(t, bs[0].Enter(ctx), context.DeadlineExceeded)
		round(v, bs[:2]...)
	})
}

func TestAcceptance125ALeftoverOfACrashLetsNobodyThroughEarly(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		waiting, crashed := v.Session(), v.Session()
		early := zkbarrier.NewDoubleBarrier(waiting, doublePath, 2)
		first := proving.Waits(context.Background(), early.Enter)
		v.Settled(doubleParties, 1)
		v.Expire(waiting) // enters again, and is one party still
		v.Quiet()
		require.True(t, first.Pending())
		require.NoError(t, zkbarrier.NewDoubleBarrier(crashed, doublePath, 2).Enter(context.Background()))
		v.Passes(first)
		v.Expire(crashed)
		require.ErrorIs(t, early.Leave(context.Background()), zksync.ErrBroken, "the dead do not keep the living")

		// Both die inside. Nobody ends the round, whose mark is still there. The one above may not know yet
		// that its session is over, and might rightly be told that the round went on: these are others.
		one, other := v.Session(), v.Session()
		allPass(v, enters(zkbarrier.NewDoubleBarrier(one, doublePath, 2), zkbarrier.NewDoubleBarrier(other, doublePath, 2)))
		v.Expire(one)
		v.Expire(other)
		bs := doubles(v, 2, 2)
		alone := enters(bs[0])
		nonePasses(v, alone)
		allPass(v, append(alone, enters(bs[1])...))
		allPass(v, leaves(bs...))
		round(v, bs...)
	})
}

func TestAcceptance125ARoundThatNobodyIsInEndsWhenSomebodyComes(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		b := doubles(v, 1, 1)[0]
		dying := v.Session()
		require.NoError(t, zkbarrier.NewDoubleBarrier(dying, doublePath, 1).Enter(context.Background()))
		v.Expire(dying)
		v.Queued(doubleParties, 0)
		start := time.Now()
		require.NoError(t, b.Enter(context.Background()))
		v.AtOnce(start, "Enter")
		require.NoError(t, b.Leave(context.Background()))
	})
}

func TestAcceptance125ALeftoverParticipantKeepsTheNextRunOutside(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		old, bs := doubles(v, 3, 3), doubles(v, 3, 3)
		allPass(v, enters(old...))
		for range 2 {
			next := enters(bs...)
			nonePasses(v, next) // the others of the earlier run are inside
			allPass(v, leaves(old...))
			allPass(v, next)
			old, bs = bs, old
		}
	})
}

func TestAcceptance125MarkersByHandLetNobodyThroughEarly(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 2, 2)
		round(v, bs...)
		dir, _ := v.Server.Node(doubleParties)
		mark := fmt.Sprintf("%s/open-%x", doublePath, dir.Stat.Czxid)
		v.Put(mark, "") // opens nothing
		v.Put(doublePath+"/open-1", "")
		round(v, bs...)
		round(v, bs...)

		allPass(v, enters(bs...))
		dir, _ = v.Server.Node(doubleParties)
		v.Remove(fmt.Sprintf("%s/open-%x", doublePath, dir.Stat.Czxid))
		late := doubles(v, 2, 2)
		next := enters(late...)
		nonePasses(v, next)
		allPass(v, leaves(bs...))
		allPass(v, next)
		allPass(v, leaves(late...))
		round(v, bs...)
	})
}

func TestAcceptance126AWaitSurvivesAMereReconnect(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a, b := v.Session(), v.Session()
		bs := []*zkbarrier.DoubleBarrier{zkbarrier.NewDoubleBarrier(a, doublePath, 2), zkbarrier.NewDoubleBarrier(b, doublePath, 2)}
		for range 2 {
			for _, f := range []func(...*zkbarrier.DoubleBarrier) []*proving.Attempt{enters, leaves} {
				id := a.ID()
				first := f(bs[0])
				v.Quiet()
				v.Disconnect(a)
				v.Connected(a)
				nonePasses(v, first)
				require.Equal(t, id, a.ID())
				start := time.Now()
				allPass(v, append(f(bs[1]), first...))
				v.AtOnce(start, "passing")
			}
		}
	})
}

func TestALeaveThatWasCutShortHasLeftAllTheSame(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 3, 3)
		allPass(v, enters(bs...))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, bs[0].Leave(ctx), context.DeadlineExceeded)
		v.Took(start, 300*time.Millisecond, "Leave")
		require.ErrorIs(t, bs[1].Leave(ctx), context.DeadlineExceeded, "even with a context that ended before")
		v.Left(doubleParties, 1, "two have left")
		again := leaves(bs[0])
		next := enters(bs[1])
		nonePasses(v, append(again, next...))
		allPass(v, append(leaves(bs[2]), again...))
		allPass(v, append(enters(bs[0], bs[2]), next...))
	})
}

func TestCallsOutOfTurnAreMisuse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		b := doubles(v, 1, 2)[0]
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrMisuse)
		first := enters(b)
		v.Quiet()
		require.ErrorIs(t, b.Enter(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrMisuse)
		other := doubles(v, 1, 2)[0]
		allPass(v, append(first, enters(other)...))
		require.ErrorIs(t, b.Enter(context.Background()), zksync.ErrMisuse)
		allPass(v, leaves(b, other))
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrMisuse)

		err := doubles(v, 1, 3)[0].Enter(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "number of parties of the double barrier is 2, not 3")
		require.ErrorIs(t, doubles(v, 1, 0)[0].Enter(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, zkbarrier.NewDoubleBarrier(nil, doublePath, 1).Enter(context.Background()), zksync.ErrMisuse)
		v.Put("/not/one", "x")
		require.ErrorIs(t, zkbarrier.NewDoubleBarrier(v.Session(), "/not/one", 1).Enter(context.Background()), zksync.ErrMisuse)
	})
}

func TestTenPartiesTakeTwentyRequestsEachWay(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		round(v, doubles(v, 10, 10)...) // makes the nodes
		var bs []*zkbarrier.DoubleBarrier
		for range 10 {
			bs = append(bs, zkbarrier.NewDoubleBarrier(proving.Calm(v), doublePath, 10))
		}
		for range 2 { // with new objects, and with those that were used before
			v.Costs(20, func() { allPass(v, enters(bs...)) })
			v.Costs(20, func() { allPass(v, leaves(bs...)) })
		}
		one := zkbarrier.NewDoubleBarrier(proving.Calm(v), "/doubles/first", 1)
		v.Costs(7, func() { require.NoError(t, one.Enter(context.Background())) }, "five more, to make the nodes")
	})
}
