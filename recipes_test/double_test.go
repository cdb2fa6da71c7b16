package recipes_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	doublePath    = "/doubles/a"
	doubleParties = doublePath + "/parties"
)

// doubles opens count sessions and names the same double barrier of n parties through each.
func (v *env) doubles(count, n int) []*zkbarrier.DoubleBarrier {
	v.t.Helper()
	all := make([]*zkbarrier.DoubleBarrier, count)
	for i := range all {
		all[i] = zkbarrier.NewDoubleBarrier(v.session(), doublePath, n)
	}
	return all
}

func enters(bs ...*zkbarrier.DoubleBarrier) []*attempt {
	return eachOf(bs, (*zkbarrier.DoubleBarrier).Enter)
}

func leaves(bs ...*zkbarrier.DoubleBarrier) []*attempt {
	return eachOf(bs, (*zkbarrier.DoubleBarrier).Leave)
}

func eachOf(bs []*zkbarrier.DoubleBarrier, f func(*zkbarrier.DoubleBarrier, context.Context) error) []*attempt {
	var all []*attempt
	for _, b := range bs {
		all = append(all, waits(context.Background(), func(ctx context.Context) error { return f(b, ctx) }))
	}
	return all
}

func (v *env) allPass(all []*attempt) {
	v.t.Helper()
	for _, a := range all {
		v.passes(a)
	}
}

// nonePasses checks that all of them wait, also after they had time to look again.
func (v *env) nonePasses(all []*attempt) {
	v.t.Helper()
	v.quiet()
	if v.virtual {
		v.aWhile()
	}
	for i, a := range all {
		require.True(v.t, a.pending(), "%d has passed: %v", i, a.err)
	}
}

// round has all of them enter and leave, one after the other.
func (v *env) round(bs ...*zkbarrier.DoubleBarrier) {
	v.t.Helper()
	if !v.virtual { // the node of one whose Enter has failed may go a while later, and counts until then
		v.queued(doubleParties, 0)
	}
	for _, f := range []func(...*zkbarrier.DoubleBarrier) []*attempt{enters, leaves} {
		first := f(bs[:len(bs)-1]...)
		v.nonePasses(first)
		v.allPass(append(first, f(bs[len(bs)-1])...))
	}
	v.queued(doubleParties, 0)
}

func TestPartiesEnterTogetherAndLeaveTogetherRoundAfterRound(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		bs := v.doubles(4, 4)
		for range 3 {
			v.round(bs...)
			slices.Reverse(bs)
		}
	})
}

func TestPartiesMayShareASession(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		var bs []*zkbarrier.DoubleBarrier
		for range 3 {
			bs = append(bs, zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		}
		v.round(bs...)
		v.round(bs...)
	})
}

func TestADoubleBarrierOfOnePasses(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		b := v.doubles(1, 1)[0]
		for range 3 {
			require.NoError(t, b.Enter(context.Background()))
			require.NoError(t, b.Leave(context.Background()))
		}
	})
}

func TestWhoeverComesLateIsInTheNextRound(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		bs := v.doubles(5, 2)
		v.allPass(enters(bs[:2]...))
		late := enters(bs[2:]...)
		v.nonePasses(late)
		v.allPass(leaves(bs[:2]...))
		v.eventually(func() bool { return !late[0].pending() || !late[1].pending() || !late[2].pending() }, "no next round")
		v.quiet()
		in := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return late[i].pending() })
		require.Len(t, in, 2, "of three who wait")
		for _, i := range in {
			v.passes(late[i])
		}
		v.allPass(leaves(bs[2+in[0]], bs[2+in[1]]))
		out := 3 - in[0] - in[1]
		v.allPass(append(enters(bs[0]), late[out]))
		v.allPass(leaves(bs[0], bs[2+out]))
	})
}

func TestAcceptance125APartyThatGaveUpDoesNotCount(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		bs := v.doubles(3, 2)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, bs[0].Enter(ctx), context.DeadlineExceeded)
		v.took(start, 300*time.Millisecond, "Enter")
		if !v.virtual {
			v.quiet() // a server that stands still may make the node yet
		}
		v.left(doubleParties, 0, "it gave up")
		one := enters(bs[1])
		v.nonePasses(one)
		v.allPass(append(one, enters(bs[2])...))
		v.allPass(leaves(bs[1:]...))
		require.ErrorIs(t, bs[0].Enter(ctx), context.DeadlineExceeded)
		v.round(bs[:2]...)
	})
}

func TestAcceptance125ALeftoverOfACrashLetsNobodyThroughEarly(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		waiting, crashed := v.session(), v.session()
		early := zkbarrier.NewDoubleBarrier(waiting, doublePath, 2)
		first := waits(context.Background(), early.Enter)
		v.settled(doubleParties, 1)
		v.expire(waiting) // enters anew, and is one party still
		v.quiet()
		require.True(t, first.pending())
		require.NoError(t, zkbarrier.NewDoubleBarrier(crashed, doublePath, 2).Enter(context.Background()))
		v.passes(first)
		v.expire(crashed)
		require.NoError(t, early.Leave(context.Background()), "the dead do not keep the living")

		// Both die inside. Nobody ends the round, whose mark is still there. The one above may not know yet
		// that its session is over, and might rightly be told that the round went on: these are others.
		one, other := v.session(), v.session()
		v.allPass(enters(zkbarrier.NewDoubleBarrier(one, doublePath, 2), zkbarrier.NewDoubleBarrier(other, doublePath, 2)))
		v.expire(one)
		v.expire(other)
		bs := v.doubles(2, 2)
		alone := enters(bs[0])
		v.nonePasses(alone)
		v.allPass(append(alone, enters(bs[1])...))
		v.allPass(leaves(bs...))
		v.round(bs...)
	})
}

func TestAcceptance125ARoundThatNobodyIsInEndsWhenSomebodyComes(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		b := v.doubles(1, 1)[0]
		dying := v.session()
		require.NoError(t, zkbarrier.NewDoubleBarrier(dying, doublePath, 1).Enter(context.Background()))
		v.expire(dying)
		v.queued(doubleParties, 0)
		start := time.Now()
		require.NoError(t, b.Enter(context.Background()))
		v.atOnce(start, "Enter")
		require.NoError(t, b.Leave(context.Background()))
	})
}

func TestAcceptance125ALeftoverParticipantKeepsTheNextRunOutside(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		old, bs := v.doubles(3, 3), v.doubles(3, 3)
		v.allPass(enters(old...))
		for range 2 {
			next := enters(bs...)
			v.nonePasses(next) // the others of the earlier run are inside
			v.allPass(leaves(old...))
			v.allPass(next)
			old, bs = bs, old
		}
	})
}

func TestAcceptance125MarkersByHandLetNobodyThroughEarly(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(2, 2)
		v.round(bs...)
		dir, _ := v.srv.Node(doubleParties)
		mark := fmt.Sprintf("%s/open-%x", doublePath, dir.Stat.Czxid)
		v.put(mark, "") // opens nothing
		v.put(doublePath+"/open-1", "")
		v.round(bs...)
		v.round(bs...)

		v.allPass(enters(bs...))
		dir, _ = v.srv.Node(doubleParties)
		v.remove(fmt.Sprintf("%s/open-%x", doublePath, dir.Stat.Czxid))
		late := v.doubles(2, 2)
		next := enters(late...)
		v.nonePasses(next)
		v.allPass(leaves(bs...))
		v.allPass(next)
		v.allPass(leaves(late...))
		v.round(bs...)
	})
}

func TestAcceptance126AWaitSurvivesAMereReconnect(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		a, b := v.session(), v.session()
		bs := []*zkbarrier.DoubleBarrier{zkbarrier.NewDoubleBarrier(a, doublePath, 2), zkbarrier.NewDoubleBarrier(b, doublePath, 2)}
		for range 2 {
			for _, f := range []func(...*zkbarrier.DoubleBarrier) []*attempt{enters, leaves} {
				id := a.ID()
				first := f(bs[0])
				v.quiet()
				v.disconnect(a)
				v.connected(a)
				v.nonePasses(first)
				require.Equal(t, id, a.ID())
				start := time.Now()
				v.allPass(append(f(bs[1]), first...))
				v.atOnce(start, "passing")
			}
		}
	})
}

func TestALeaveThatWasCutShortHasLeftAllTheSame(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		bs := v.doubles(3, 3)
		v.allPass(enters(bs...))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, bs[0].Leave(ctx), context.DeadlineExceeded)
		v.took(start, 300*time.Millisecond, "Leave")
		require.ErrorIs(t, bs[1].Leave(ctx), context.DeadlineExceeded, "even with a context that ended before")
		v.left(doubleParties, 1, "two have left")
		again := leaves(bs[0])
		next := enters(bs[1])
		v.nonePasses(append(again, next...))
		v.allPass(append(leaves(bs[2]), again...))
		v.allPass(append(enters(bs[0], bs[2]), next...))
	})
}

func TestCallsOutOfTurnAreMisuse(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		b := v.doubles(1, 2)[0]
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrMisuse)
		first := enters(b)
		v.quiet()
		require.ErrorIs(t, b.Enter(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrMisuse)
		other := v.doubles(1, 2)[0]
		v.allPass(append(first, enters(other)...))
		require.ErrorIs(t, b.Enter(context.Background()), zksync.ErrMisuse)
		v.allPass(leaves(b, other))
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrMisuse)

		err := v.doubles(1, 3)[0].Enter(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "2 parties, not 3")
		require.ErrorIs(t, v.doubles(1, 0)[0].Enter(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, zkbarrier.NewDoubleBarrier(nil, doublePath, 1).Enter(context.Background()), zksync.ErrMisuse)
		v.put("/not/one", "x")
		require.ErrorIs(t, zkbarrier.NewDoubleBarrier(v.session(), "/not/one", 1).Enter(context.Background()), zksync.ErrMisuse)
	})
}

func TestTenPartiesTakeTwentyRequestsEachWay(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		v.round(v.doubles(10, 10)...) // makes the nodes
		var bs []*zkbarrier.DoubleBarrier
		for range 10 {
			bs = append(bs, zkbarrier.NewDoubleBarrier(calm(v), doublePath, 10))
		}
		for range 2 { // with new objects, and with those that were used before
			v.costs(20, func() { v.allPass(enters(bs...)) })
			v.costs(20, func() { v.allPass(leaves(bs...)) })
		}
		one := zkbarrier.NewDoubleBarrier(calm(v), "/doubles/first", 1)
		v.costs(7, func() { require.NoError(t, one.Enter(context.Background())) }, "five more, to make the nodes")
	})
}
