package barrier_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// It was counted in a round that went on without it. That it has come to the next one, when its second
// session is lost before the answer, changes nothing of that.
func TestAPartyThatLosesTwoSessionsIsToldOfTheRoundThatWentOnInTheFirst(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		bs := append(doubles(v, 2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		round(v, bs...)
		first := proving.Waits(context.Background(), bs[2].Enter)
		v.Settled(doubleParties, 1)
		old := s.ID()
		defer v.Server.Partition(old)()
		allPass(v, enters(bs[:2]...))
		mute := v.Server.Intercept(zktest.On(zktest.Create, doubleParties+"/*").Nth(1).DelayReply(time.Hour))
		v.Server.Expire(old)
		mourn(v, leaves(bs[:2]...), "")
		v.Eventually(func() bool { return mute.Fired() == 1 }, "no second arrival")
		require.NotEqual(t, old, s.ID())
		v.Server.Expire(s.ID())
		mute.Remove()
		require.ErrorIs(t, v.Failed(first), zksync.ErrSessionExpired)
		round(v, bs...)
	})
}

// Its arrival was never answered, and the session in which it looks for its node is lost as well.
func TestAPartyThatLosesTheSessionInWhichItLooksIsToldOfTheRoundAllTheSame(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		bs := append(doubles(v, 2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		round(v, bs...)
		old := s.ID()
		var first []int64
		for _, x := range v.Server.Sessions() {
			first = append(first, x.ID)
		}
		defer v.Server.DropReplies(old)()
		deaf := enters(bs[2])
		v.Settled(doubleParties, 1)
		allPass(v, enters(bs[:2]...))
		var looked atomic.Bool
		remove := v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
			if q.Op == zktest.Exists && q.Path == doubleParties && !slices.Contains(first, q.Session) && !looked.Swap(true) {
				verdict.DelayReply = time.Hour
			}
			return verdict
		})
		v.Server.Expire(old)
		mourn(v, leaves(bs[:2]...), "")
		v.Eventually(looked.Load, "it does not look")
		require.NotEqual(t, old, s.ID())
		v.Server.Expire(s.ID())
		remove()
		require.ErrorIs(t, v.Failed(deaf[0]), zksync.ErrSessionExpired)
		round(v, bs...)
	})
}

// It has never heard anything from the servers, but there has been no round that it could have missed.
func TestAPartyWhoseFirstSessionIsLostBeforeTheFirstRoundOpensComesAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 2, 3)
		first := enters(bs[0])
		v.Settled(doubleParties, 1)
		s := v.Session()
		b := zkbarrier.NewDoubleBarrier(s, doublePath, 3)
		defer v.Server.DropReplies(s.ID())()
		deaf := enters(b)
		v.Settled(doubleParties, 2)
		v.Server.Expire(s.ID())
		allPass(v, append(append(first, deaf...), enters(bs[1])...))
		allPass(v, leaves(append(bs, b)...))
	})
}
