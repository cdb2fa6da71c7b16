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

// It was counted in a round that went on without it. That it has come to the next one, when its second
// session is lost before the answer, changes nothing of that.
func TestAPartyThatLosesTwoSessionsIsToldOfTheRoundThatWentOnInTheFirst(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		bs := append(v.doubles(2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		v.round(bs...)
		first := waits(context.Background(), bs[2].Enter)
		v.settled(doubleParties, 1)
		old := s.ID()
		defer v.srv.Partition(old)()
		v.allPass(enters(bs[:2]...))
		v.srv.Expire(old)
		v.allPass(leaves(bs[:2]...))
		mute := v.srv.Intercept(zktest.On(zktest.Create, doubleParties+"/*").Nth(1).DelayReply(time.Hour))
		v.eventually(func() bool { return mute.Fired() == 1 }, "no second arrival")
		require.NotEqual(t, old, s.ID())
		v.srv.Expire(s.ID())
		mute.Remove()
		require.ErrorIs(t, v.failed(first), zksync.ErrSessionExpired)
		v.round(bs...)
	})
}

// Its arrival was never answered, and the session in which it looks for its node is lost as well.
func TestAPartyThatLosesTheSessionInWhichItLooksIsToldOfTheRoundAllTheSame(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		bs := append(v.doubles(2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		v.round(bs...)
		old := s.ID()
		defer v.srv.DropReplies(old)()
		deaf := enters(bs[2])
		v.settled(doubleParties, 1)
		v.allPass(enters(bs[:2]...))
		look := v.srv.Intercept(zktest.On(zktest.Exists, doubleParties).Nth(1).DelayReply(time.Hour))
		v.srv.Expire(old)
		v.allPass(leaves(bs[:2]...))
		v.eventually(func() bool { return look.Fired() == 1 }, "it does not look")
		require.NotEqual(t, old, s.ID())
		v.srv.Expire(s.ID())
		look.Remove()
		require.ErrorIs(t, v.failed(deaf[0]), zksync.ErrSessionExpired)
		v.round(bs...)
	})
}

// It has never heard anything from the servers, but there has been no round that it could have missed.
func TestAPartyWhoseFirstSessionIsLostBeforeTheFirstRoundOpensComesAgain(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(2, 3)
		first := enters(bs[0])
		v.settled(doubleParties, 1)
		s := v.session()
		b := zkbarrier.NewDoubleBarrier(s, doublePath, 3)
		defer v.srv.DropReplies(s.ID())()
		deaf := enters(b)
		v.settled(doubleParties, 2)
		v.srv.Expire(s.ID())
		v.allPass(append(append(first, deaf...), enters(bs[1])...))
		v.allPass(leaves(append(bs, b)...))
	})
}
