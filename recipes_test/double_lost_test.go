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

// lateAnswer has a party come whose connection ends before the answer, and is back only
// after the others have come.
func (v *env) lateAnswer(b *zkbarrier.DoubleBarrier, others ...*zkbarrier.DoubleBarrier) *attempt {
	v.t.Helper()
	v.strike(1, zktest.LoseReply)
	heal := v.srv.Refuse()
	a := waits(context.Background(), b.Enter)
	v.quiet()
	require.True(v.t, a.pending())
	v.allPass(enters(others...))
	heal()
	return a
}

func TestAPartyWhoseAnswerCameAfterTheOthersIsIn(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(3, 3)
		v.round(bs...)
		v.passes(v.lateAnswer(bs[0], bs[1:]...))
		v.allPass(leaves(bs...))
	})
}

func TestAPartyThatMayBeOneTooManyWithdraws(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(3, 3)
		v.round(bs...)
		ctx, cancel := context.WithCancel(context.Background())
		gone := waits(ctx, bs[1].Enter)
		v.settled(doubleParties, 1)
		cancel()
		require.ErrorIs(t, v.failed(gone), context.Canceled)
		require.ErrorIs(t, v.failed(v.lateAnswer(bs[0], bs[1:]...)), zksync.ErrBroken)
		v.allPass(leaves(bs[1:]...))
		v.round(bs...)
	})
}

func TestARoundGoesOnWithoutAPartyWhoseSessionIsLost(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		b := zkbarrier.NewDoubleBarrier(s, doublePath, 3)
		bs := v.doubles(2, 3)
		first := waits(context.Background(), b.Enter)
		v.settled(doubleParties, 1)
		heal := v.cutOff(s)
		v.allPass(enters(bs...))
		out := leaves(bs...)
		v.quiet()
		require.True(t, out[0].pending() && out[1].pending(), "the third may be alive")
		v.allPass(out)
		heal()
		require.ErrorIs(t, v.failed(first), zksync.ErrSessionExpired)
		v.round(append(bs, b)...)
	})
}

// Its arrival was never answered, but its node tells that it was there.
func TestARoundGoesOnWithoutAPartyThatNeverHeardOfItsArrival(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		bs := append(v.doubles(2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		v.round(bs...)
		heal := v.srv.DropReplies(s.ID())
		defer heal()
		deaf := enters(bs[2])
		v.settled(doubleParties, 1)
		v.allPass(enters(bs[:2]...))
		require.ErrorIs(t, v.failed(deaf[0]), zksync.ErrSessionExpired)
		v.allPass(leaves(bs[:2]...))
		v.round(bs...)
	})
}

// Neither an answer nor a node tells whether it was there: the session had ended before it could look.
func TestAPartyThatMayHaveBeenCountedInALostSessionIsToldSo(t *testing.T) {
	for name, meanwhile := range map[string]func(v *env, others []*zkbarrier.DoubleBarrier){
		"open": func(*env, []*zkbarrier.DoubleBarrier) {},
		"over": func(v *env, others []*zkbarrier.DoubleBarrier) { v.allPass(leaves(others...)) },
	} {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				s := v.session()
				bs := append(v.doubles(2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
				v.round(bs...)
				defer v.srv.DropReplies(s.ID())()
				deaf := enters(bs[2])
				v.settled(doubleParties, 1)
				v.allPass(enters(bs[:2]...))
				v.srv.Expire(s.ID())
				meanwhile(v, bs[:2])
				require.ErrorIs(t, v.failed(deaf[0]), zksync.ErrSessionExpired)
				if name == "open" {
					v.allPass(leaves(bs[:2]...))
				}
				v.round(bs...)
			})
		})
	}
}

func TestAPartyWhoseSessionWasLostBeforeTheRoundOpenedComesAgain(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		bs := append(v.doubles(2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		v.round(bs...)
		defer v.srv.DropReplies(s.ID())()
		deaf := enters(bs[2])
		v.settled(doubleParties, 1)
		v.srv.Expire(s.ID())
		v.settled(doubleParties, 1)
		v.allPass(append(deaf, enters(bs[:2]...)...))
		v.allPass(leaves(bs...))
	})
}

func TestAPartyWhoseSessionWasLostInsideIsToldSo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		b := zkbarrier.NewDoubleBarrier(s, doublePath, 3)
		bs := append(v.doubles(2, 3), b)
		v.allPass(enters(bs...))
		v.expire(s)
		v.allPass(leaves(bs[:2]...))
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrSessionExpired)
		require.ErrorIs(t, b.Leave(context.Background()), zksync.ErrMisuse, "it is outside")
		v.round(bs...)
	})
}

// Whoever could leave before the servers noticed has left like everybody else.
func TestAPartyMayLeaveInTheNextSession(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		bs := append(v.doubles(2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		v.allPass(enters(bs...))
		out := leaves(bs[:2]...)
		old := s.ID()
		heal := v.srv.DropRequests(old) // the client gives up before the servers do
		defer heal()
		v.eventually(func() bool { return s.ID() != old }, "no other session")
		v.connected(s)
		require.Len(t, v.children(doubleParties), 1, "the servers keep the old session for a while")
		require.NoError(t, bs[2].Leave(context.Background()))
		v.allPass(out)
	})
}

// A node that could not be removed and the one of the next attempt are one party.
func TestAcceptance125APartyThatGaveUpWithoutAConnectionCountsOnce(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		bs := append(v.doubles(2, 3), zkbarrier.NewDoubleBarrier(s, doublePath, 3))
		v.round(bs...)
		ctx, cancel := context.WithCancel(context.Background())
		first := waits(ctx, bs[2].Enter)
		v.settled(doubleParties, 1)
		heal := v.srv.Partition(s.ID())
		defer heal()
		cancel()
		require.ErrorIs(t, v.failed(first), context.Canceled)
		waiting := append(enters(bs[2]), enters(bs[0])...)
		time.Sleep(30 * time.Second)
		v.nonePasses(waiting)
		v.allPass(append(waiting, enters(bs[1])...))
		v.allPass(leaves(bs...))
	})
}

// The opener is alive, as far as anybody can tell, and does not come to open the round.
func TestTheOthersOpenARoundWhoseOpenerIsStuck(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(3, 3)
		v.round(bs...)
		first := enters(bs[:2]...)
		v.settled(doubleParties, 2)
		stuck := v.srv.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-3").Nth(1).Hold())
		last := enters(bs[2])
		start := time.Now()
		v.allPass(first)
		v.within(start, 10*time.Second, "who waits finds out")
		stuck.Release()
		v.allPass(last)
		v.allPass(leaves(bs...))
	})
}

func TestAPartyWhoseNodeWasRemovedOpensNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(2, 2)
		v.round(bs...)
		first := enters(bs[0])
		v.settled(doubleParties, 1)
		before := v.children(doubleParties)
		opening := v.srv.Intercept(zktest.On(zktest.Delete, doublePath+"/gathering-2").Nth(1).Hold())
		last := enters(bs[1])
		v.settled(doubleParties, 2)
		for _, name := range v.children(doubleParties) {
			if name != before[0] {
				v.remove(doubleParties + "/" + name)
			}
		}
		opening.Release()
		v.allPass(append(first, last...))
		require.Len(t, v.children(doubleParties), 2, "it has come again")
		v.allPass(leaves(bs...))
	})
}

// The next round is open already when the party comes to wait for the end of its own.
func TestALeaverDoesNotTakeTheNextRoundForItsOwn(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		bs := v.doubles(4, 2)
		v.round(bs[:2]...)
		v.allPass(enters(bs[:2]...))
		watch := v.srv.Intercept(zktest.On(zktest.GetData, doublePath+"/open-*").Nth(1).Hold())
		slow := leaves(bs[0])
		v.settled(doubleParties, 1)
		require.Equal(t, 1, watch.Held())
		v.allPass(leaves(bs[1]))
		v.allPass(enters(bs[2:]...))
		watch.Release()
		start := time.Now()
		v.passes(slow[0])
		v.atOnce(start, "the end of a round that is over")
		v.allPass(leaves(bs[2:]...))
	})
}

// The owner of a tapped connection goes on with the session that could not be proved to live for a while, and nobody enters through
// that object again.
func TestAPartyThatGivesUpInALostSessionIsRemovedThoughItsTappedSessionLivesOn(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		conn := v.srv.Connect(t, 6*time.Second)
		s, err := zksync.Tap(context.Background(), conn)
		require.NoError(t, err)
		defer s.Close()
		ctx, cancel := context.WithCancel(context.Background())
		lost := waits(ctx, zkbarrier.NewDoubleBarrier(s, doublePath, 2).Enter)
		v.settled(doubleParties, 1)
		id := s.ID()
		held := v.srv.Intercept(zktest.On(zktest.Sync, "/").Of(id).Hold())
		time.Sleep(7 * time.Second)
		cancel()
		require.ErrorIs(t, v.failed(lost), context.Canceled)
		held.Remove()
		v.settled(doubleParties, 0)
		require.Equal(t, id, conn.SessionID())
	})
}
