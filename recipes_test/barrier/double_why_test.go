package barrier_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// namedDoubles are n parties of a double barrier, each of its own session, called a, b, c and so on.
func namedDoubles(v *proving.Env, n int) (all []*zkbarrier.DoubleBarrier, sessions []*zksync.Session) {
	v.T.Helper()
	for i := range n {
		s := v.Session(zksync.WithName(string(rune('a'+i))), zksync.WithTimeout(dying))
		sessions = append(sessions, s)
		all = append(all, zkbarrier.NewDoubleBarrier(s, doublePath, n))
	}
	return all, sessions
}

// marks are those of rounds.
func marks(v *proving.Env) (n int) {
	v.T.Helper()
	for _, name := range v.Children(doublePath) {
		if strings.HasPrefix(name, "open-") {
			n++
		}
	}
	return n
}

// The waiters have looked once when the death is noticed. So they can say who it was.
func TestADeathInsideADoubleBarrierIsToldToAllWhoLeaveWithTheName(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := namedDoubles(v, 3)
		allPass(v, enters(bs...))
		out := leaves(bs[:2]...)
		time.Sleep(dying + time.Second)
		v.Expire(sessions[2])
		start := time.Now()
		mourn(v, out, "c")
		v.Within(start, dying, "the error")
		require.EqualError(t, out[0].Err, "zkbarrier: leave "+doublePath+": the barrier is broken: "+shown("c")+" died")
		require.ErrorIs(t, bs[0].Leave(context.Background()), zksync.ErrMisuse, "it is outside")
		require.ErrorIs(t, bs[2].Leave(context.Background()), zksync.ErrSessionExpired)
		round(v, bs...)
	})
}

func TestADeathBeforeTheFirstOneLeavesIsToldToAllWhoLeave(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := namedDoubles(v, 4)
		allPass(v, enters(bs...))
		v.Expire(sessions[3])
		out := leaves(bs[:1]...)
		time.Sleep(dying + time.Second)
		start := time.Now()
		out = append(out, leaves(bs[1:3]...)...)
		mourn(v, out, "")
		v.Within(start, time.Millisecond, "the errors")
		require.EqualError(t, out[0].Err, "zkbarrier: leave "+doublePath+": the barrier is broken: 1 of 4 parties died; not left when last seen: "+shown("b")+", "+shown("c"))
		require.EqualError(t, out[2].Err, "zkbarrier: leave "+doublePath+": the barrier is broken: 1 of 4 parties died")
	})
}

// The round ends between the request after which each of them waits and the one that has the servers watch its end.
func TestAWaitThatBeginsWhenADoubleBarriersRoundHasEndedEndsAtOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := namedDoubles(v, 4)
		visitor := v.Session()
		allPass(v, enters(bs...))
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, bs[1].Leave(ended), context.Canceled)
		v.Settled(doubleParties, 3)
		var late []*zktest.Interception
		for _, s := range []*zksync.Session{sessions[0], sessions[1], visitor} {
			late = append(late, v.Server.Intercept(zktest.On(zktest.GetData, doublePath+"/open-*").Of(s.ID()).Nth(1).Hold()))
		}
		out, in := leaves(bs[:2]...), enters(zkbarrier.NewDoubleBarrier(visitor, doublePath, 4))
		v.Quiet()
		v.Expire(sessions[2])
		mourn(v, leaves(bs[3]), "")
		for _, l := range late {
			require.Equal(t, 1, l.Held())
			l.Release()
		}
		start := time.Now()
		mourn(v, out, "")
		v.AtOnce(start, "the errors")
		v.Settled(doubleParties, 1)
		v.Within(start, 20*time.Millisecond, "an arrival in the next round")
		allPass(v, append(in, enters(bs[0], bs[1], bs[3])...))
	})
}

// A party that was away, or has given its first Leave up, need not wait for its next look.
func TestAPartyThatWasAwayWhenTheRoundEndedHearsOfTheDeathAtOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := namedDoubles(v, 4)
		allPass(v, enters(bs...))
		out := leaves(bs[0])
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, bs[1].Leave(ended), context.Canceled)
		v.Settled(doubleParties, 2)
		heal := v.Server.Partition(sessions[0].ID())
		time.Sleep(dying / 2)
		v.Expire(sessions[3])
		mourn(v, leaves(bs[2]), "")
		start := time.Now()
		mourn(v, leaves(bs[1]), "")
		v.AtOnce(start, "a second Leave")
		heal()
		v.Connected(sessions[0])
		start = time.Now()
		mourn(v, out, "")
		v.Within(start, time.Millisecond, "the error")
	})
}

// To give up is no death, whether the party waits to enter or to leave. Nor is a death before the round was complete.
func TestAPartyThatGaveUpHasNotDied(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := namedDoubles(v, 3)
		ended, cancel := context.WithCancel(context.Background())
		gaveUp := proving.Waits(ended, bs[0].Enter)
		v.Settled(doubleParties, 1)
		cancel()
		require.ErrorIs(t, v.Failed(gaveUp), context.Canceled)
		dies := enters(zkbarrier.NewDoubleBarrier(sessions[2], doublePath, 3))
		v.Settled(doubleParties, 1)
		v.Expire(sessions[2])
		v.Settled(doubleParties, 1)
		allPass(v, append(dies, enters(bs[:2]...)...))
		require.ErrorIs(t, bs[0].Leave(ended), context.Canceled)
		v.Left(doubleParties, 2, "one has left")
		require.NoError(t, sessions[2].Close()) // that one dies
		mourn(v, leaves(bs[1]), "")
		require.Equal(t, 1, marks(v))
	})
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, _ := namedDoubles(v, 2)
		allPass(v, enters(bs...))
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, bs[0].Leave(ended), context.Canceled)
		require.NoError(t, bs[1].Leave(context.Background()))
		require.NoError(t, bs[0].Leave(context.Background()), "a second Leave waits for the others")
		require.Zero(t, marks(v))
	})
}

// Leave gives up while its party has no connection. The party lives, and leaves when it is connected again.
func TestAPartyThatGaveLeaveUpWithoutAConnectionHasNotDied(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := namedDoubles(v, 2)
		allPass(v, enters(bs...))
		heal := v.Server.Partition(sessions[0].ID())
		v.Server.Disconnect(sessions[0].ID())
		v.Quiet()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, bs[0].Leave(ctx), context.DeadlineExceeded)
		heal()
		v.Connected(sessions[0])
		v.Settled(doubleParties, 1)
		require.NoError(t, bs[1].Leave(context.Background()))
	})
}

func TestAWaitAtADoubleBarrierThatEndsSaysWhoIsMissing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, _ := namedDoubles(v, 3)
		soon := func(f func(context.Context) error) string {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			start := time.Now()
			err := f(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			v.Took(start, time.Second, "the call")
			_, text, _ := strings.Cut(err.Error(), "context deadline exceeded")
			return text
		}
		early := enters(bs[0])
		v.Settled(doubleParties, 1)
		text := soon(bs[1].Enter)
		require.Contains(t, text, ": 2 of 3 have entered: ")
		require.Contains(t, text, shown("a"))
		require.Contains(t, text, shown("b"))
		allPass(v, append(early, enters(bs[1:]...)...))
		late := zkbarrier.NewDoubleBarrier(v.Session(), doublePath, 3)
		require.Contains(t, soon(late.Enter), ": the round before is not over: 3 of 3 have not left: ")
		out := leaves(bs[0])
		v.Settled(doubleParties, 2)
		require.Equal(t, ": 1 of 3 have not left: "+shown("c"), soon(bs[1].Leave))
		allPass(v, append(out, leaves(bs[2])...))
		heal := v.Server.Freeze()
		defer heal()
		ctx, start := proving.Soon(t)
		require.ErrorIs(t, bs[0].Enter(ctx), context.DeadlineExceeded)
		v.Within(start, proving.Deadline+100*time.Millisecond, "Enter")
	})
}

func TestTheMarksOfRoundsWithDeathsDoNotPileUp(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, _ := namedDoubles(v, 2)
		for range 12 {
			s := v.Session()
			allPass(v, enters(bs[0], zkbarrier.NewDoubleBarrier(s, doublePath, 2)))
			v.Expire(s)
			mourn(v, leaves(bs[0]), "")
		}
		require.Equal(t, 8, marks(v))
		round(v, bs...)
		require.Equal(t, 8, marks(v))
	})
}
