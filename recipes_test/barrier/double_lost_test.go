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

// mourn waits until all of these leaves say that one party has died, and which, if it is given.
func mourn(v *proving.Env, all []*proving.Attempt, name string) {
	v.T.Helper()
	for _, a := range all {
		var why *zkbarrier.BrokenError
		require.ErrorAs(v.T, v.Failed(a), &why)
		require.Equal(v.T, zkbarrier.Died, why.Why)
		require.Equal(v.T, 1, why.Died)
		if name != "" {
			require.Equal(v.T, people(name), why.By)
		}
	}
}

// lateAnswer has a party come whose connection ends before the answer, and is back only
// after the others have come.
func lateAnswer(v *proving.Env, b *zkbarrier.DoubleBarrier, others ...*zkbarrier.DoubleBarrier) *proving.Attempt {
	v.T.Helper()
	v.Strike(1, zktest.LoseReply)
	heal := v.Server.Refuse()
	a := proving.Waits(context.Background(), b.Enter)
	v.Quiet()
	require.True(v.T, a.Pending())
	allPass(v, enters(others...))
	heal()
	return a
}

func TestAPartyWhoseAnswerCameAfterTheOthersIsIn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 3, 3)
		round(v, bs...)
		v.Passes(lateAnswer(v, bs[0], bs[1:]...))
		allPass(v, leaves(bs...))
	})
}

func TestAPartyThatMayBeOneTooManyWithdraws(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 3, 3)
		round(v, bs...)
		ctx, cancel := context.WithCancel(context.Background())
		gone := proving.Waits(ctx, bs[1].Enter)
		v.Settled(doubleParties, 1)
		cancel()
		require.ErrorIs(t, v.Failed(gone), context.Canceled)
		require.ErrorIs(t, v.Failed(lateAnswer(v, bs[0], bs[1:]...)), zksync.ErrBroken)
		allPass(v, leaves(bs[1:]...))
		round(v, bs...)
	})
}

func TestARoundGoesOnWithoutAPartyWhoseSessionIsLost(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		b := zkbarrier.NewDoubleBarrier(s, doublePath, 3)
		bs := doubles(v, 2, 3)
		first := proving.Waits(context.Background(), b.Enter)
		v.Settled(doubleParties, 1)
		heal := v.CutOff(s)
		allPass(v, enters(bs...))
		out := leaves(bs...)
		v.Quiet()
		require.True(t, out[0].Pending() && out[1].Pending(), "the third may be alive")
		mourn(v, out, "")
		heal()
		require.ErrorIs(t, v.Failed(first), zksync.ErrSessionExpired)
		round(v, append(bs, b)...)
	})
}

// Its arrival was never answered, but its node tells that it was there.
func TestARoundGoesOnWithoutAPartyThatNeverHeardOfItsArrival(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		bs := append(doubles(v, 2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		round(v, bs...)
		heal := v.Server.DropReplies(s.ID())
		defer heal()
		v.Server.Intercept(zktest.On(zktest.CloseSession, "**").Of(s.ID()).LoseRequest()) // or the others may hear of a death: see below
		deaf := enters(bs[2])
		v.Settled(doubleParties, 1)
		allPass(v, enters(bs[:2]...))
		require.ErrorIs(t, v.Failed(deaf[0]), zksync.ErrSessionExpired)
		allPass(v, leaves(bs[:2]...))
		round(v, bs...)
	})
}

// Neither an answer nor a node tells whether it was there: the session had ended before it could look.
func TestAPartyThatMayHaveBeenCountedInALostSessionIsToldSo(t *testing.T) {
	for name, meanwhile := range map[string]func(v *proving.Env, others []*zkbarrier.DoubleBarrier){
		"open": func(*proving.Env, []*zkbarrier.DoubleBarrier) {},
		"over": func(v *proving.Env, others []*zkbarrier.DoubleBarrier) { mourn(v, leaves(others...), "") },
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				bs := append(doubles(v, 2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
				round(v, bs...)
				defer v.Server.DropReplies(s.ID())()
				deaf := enters(bs[2])
				v.Settled(doubleParties, 1)
				allPass(v, enters(bs[:2]...))
				v.Server.Expire(s.ID())
				meanwhile(v, bs[:2])
				require.ErrorIs(t, v.Failed(deaf[0]), zksync.ErrSessionExpired)
				if name == "open" {
					mourn(v, leaves(bs[:2]...), "")
				}
				round(v, bs...)
			})
		})
	}
}

func TestAPartyWhoseSessionWasLostBeforeTheRoundOpenedComesAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		bs := append(doubles(v, 2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		round(v, bs...)
		defer v.Server.DropReplies(s.ID())()
		deaf := enters(bs[2])
		v.Settled(doubleParties, 1)
		v.Server.Expire(s.ID())
		v.Settled(doubleParties, 1)
		allPass(v, append(deaf, enters(bs[:2]...)...))
		allPass(v, leaves(bs...))
	})
}

func TestAPartyWhoseSessionWasLostInsideIsToldSo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		b := zkbarrier.NewDoubleBarrier(s, doublePath, 3)
		bs := append(doubles(v, 2, 3), b)
		allPass(v, enters(bs...))
		v.Expire(s)
		mourn(v, leaves(bs[:2]...), "")
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrSessionExpired)
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrMisuse, "it is outside")
		round(v, bs...)
	})
}

// Whoever could leave before the servers noticed has left like everybody else.
func TestAPartyMayLeaveInTheNextSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		bs := append(doubles(v, 2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		allPass(v, enters(bs...))
		out := leaves(bs[:2]...)
		old := s.ID()
		heal := v.Server.DropRequests(old) // the client gives up before the servers do
		defer heal()
		v.Eventually(func() bool { return s.ID() != old }, "no other session")
		v.Connected(s)
		require.Len(t, v.Children(doubleParties), 1, "the servers keep the old session for a while")
		require.NoError(t, bs[2].Leave(context.Background()))
		allPass(v, out)
	})
}

// A node that could not be removed and the one of the next attempt are one party.
func TestAcceptance125APartyThatGaveUpWithoutAConnectionCountsOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		bs := append(doubles(v, 2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		round(v, bs...)
		ctx, cancel := context.WithCancel(context.Background())
		first := proving.Waits(ctx, bs[2].Enter)
		v.Settled(doubleParties, 1)
		heal := v.Server.Partition(s.ID())
		defer heal()
		cancel()
		require.ErrorIs(t, v.Failed(first), context.Canceled)
		waiting := append(enters(bs[2]), enters(bs[0])...)
		time.Sleep(30 * time.Second)
		nonePasses(v, waiting)
		allPass(v, append(waiting, enters(bs[1])...))
		allPass(v, leaves(bs...))
	})
}

// The opener is alive, as far as anybody can tell, and does not come to open the round.
func TestTheOthersOpenARoundWhoseOpenerIsStuck(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 3, 3)
		round(v, bs...)
		first := enters(bs[:2]...)
		v.Settled(doubleParties, 2)
		stuck := v.Server.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-3").Nth(1).Hold())
		last := enters(bs[2])
		start := time.Now()
		allPass(v, first)
		v.Within(start, 15*time.Second, "who waits finds out")
		stuck.Release()
		allPass(v, last)
		allPass(v, leaves(bs...))
	})
}

func TestAPartyWhoseNodeWasRemovedOpensNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 2, 2)
		round(v, bs...)
		first := enters(bs[0])
		v.Settled(doubleParties, 1)
		before := v.Children(doubleParties)
		opening := v.Server.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-2").Nth(1).Hold())
		last := enters(bs[1])
		v.Settled(doubleParties, 2)
		for _, name := range v.Children(doubleParties) {
			if name != before[0] {
				v.Remove(doubleParties + "/" + name)
			}
		}
		opening.Release()
		allPass(v, append(first, last...))
		require.Len(t, v.Children(doubleParties), 2, "it has come again")
		allPass(v, leaves(bs...))
	})
}

// The next round is open already when the party comes to wait for the end of its own.
func TestALeaverDoesNotTakeTheNextRoundForItsOwn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := doubles(v, 4, 2)
		round(v, bs[:2]...)
		allPass(v, enters(bs[:2]...))
		watch := v.Server.Intercept(zktest.On(zktest.GetData, doublePath+"/open-*").Nth(1).Hold())
		slow := leaves(bs[0])
		v.Settled(doubleParties, 1)
		require.Equal(t, 1, watch.Held())
		allPass(v, leaves(bs[1]))
		allPass(v, enters(bs[2:]...))
		watch.Release()
		start := time.Now()
		v.Passes(slow[0])
		v.AtOnce(start, "the end of a round that is over")
		allPass(v, leaves(bs[2:]...))
	})
}
