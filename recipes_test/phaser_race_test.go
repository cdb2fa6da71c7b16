package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The last party leaves, and before it has had the phaser terminate another one registers and
// arrives.
func TestAPhaserDoesNotTerminateOverTheHeadOfANewcomer(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ps := v.phasers(3)
		v.gives(0, ps[0].Register)
		held := v.srv.Intercept(zktest.On(zktest.Delete, phaserPath+"/phase-0").Hold())
		leaves := phase(context.Background(), ps[0].ArriveAndDeregister)
		require.NoError(t, held.WaitHeld(t.Context()))
		v.gives(0, ps[1].Register)
		arrives := phase(context.Background(), ps[1].Arrive)
		v.quiet()
		require.Equal(t, 2, held.Held(), "both are about to have it advance")
		held.ReleaseOne()
		v.arrives(leaves, 0)
		held.Remove()
		v.arrives(arrives, 0)
		v.gives(1, ps[2].Phase)
		v.census(ps[2], 0, 1)
		v.gives(1, ps[1].ArriveAndDeregister)
		v.gives(terminated+2, ps[2].Phase)
	})
}

// An arrival whose answer is lost, and whose context ends, stands; the others go on to the next
// phase. Then the party leaves, which is an arrival at the next one, the last.
func TestAPartyThatLeavesAfterAnArrivalInDoubtKeepsNobodyWaiting(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ps := v.phasers(2)
		v.gives(0, ps[0].Register)
		v.gives(0, ps[1].Register)
		ctx, cancel := context.WithCancel(context.Background())
		v.strike(1, zktest.LoseReply)
		allow := v.srv.Refuse()
		arrives := phase(ctx, ps[0].Arrive)
		v.quiet()
		cancel()
		require.ErrorIs(t, v.failed(arrives.attempt), context.Canceled)
		v.gives(0, ps[1].Arrive)
		v.gives(1, ps[1].Arrive)
		allow()
		v.gives(0, ps[0].ArriveAndDeregister)
		v.gives(2, ps[1].Phase)
		v.census(ps[1], 0, 1)
	})
}

// The last one who had to arrive dies, and nobody waits; but somebody comes for the next phase.
func TestAnArrivalAtTheNextPhaseNoticesThatThePhaseIsOver(t *testing.T) {
	for _, action := range []bool{false, true} {
		inProcess(t, func(t *testing.T, v *env) {
			var opts []zksync.Option
			if action {
				opts = append(opts, zkphaser.WithOnAdvance(func(_ context.Context, _, registered int) bool { return registered == 0 }))
			}
			p, dying := v.phasers(1, opts...)[0], v.session()
			v.gives(0, p.Register)
			v.gives(0, zkphaser.New(dying, phaserPath, opts...).Register)
			v.gives(0, p.Arrive)
			_, err := p.Arrive(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse, "the other one has still to arrive")
			v.srv.Expire(dying.ID())
			v.gives(1, p.Arrive)
			v.gives(2, p.ArriveAndDeregister)
			v.gives(terminated+3, p.Phase)
		})
	}
}

// The request of an arrival lies in the queue of a server while its session goes to another one; and it is applied
// between the two looks with which its party finds out what became of it, because the session comes back.
func TestAnArrivalThatIsAppliedWhileItsPartyLooksForItStands(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		p, other := zkphaser.New(s, phaserPath), zkphaser.New(e.SessionAt(t, 2), phaserPath)
		gives := func(want int, f func(context.Context) (int, error)) {
			n, err := f(context.Background())
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		gives(0, p.Register)
		gives(0, other.Register)
		held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
		second := e.Intercept(zktest.On(zktest.Exists, phaserPath+"/phase-*/*").Of(s.ID()).Nth(2).Times(3).Hold())
		arrives := phase(context.Background(), p.Arrive)
		require.NoError(t, held.WaitHeld(t.Context()))
		e.Disconnect(s.ID())
		time.Sleep(100 * time.Millisecond)
		comesBack(t, e, s)
		held.Release()
		second.Release()
		<-arrives.done
		require.NoError(t, arrives.err)
		require.Equal(t, 0, arrives.phase)
		gives(1, other.ArrivedParties)
		gives(1, other.UnarrivedParties)
		gives(0, other.Arrive)
		gives(1, other.Arrive)
		gives(1, p.Arrive)
		gives(2, other.Phase)
	})
}

// The first request waits in the server that took it when the caller gives up, in a pause between two attempts.
func TestARegistrationThatWasGivenUpAndLingersInAServerDoesNotCount(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		p, other := zkphaser.New(s, phaserPath), zkphaser.New(e.SessionAt(t, 2), phaserPath)
		_, err := other.Register(context.Background())
		require.NoError(t, err)
		held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
		ctx, cancel := context.WithCancel(context.Background())
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op != zktest.Multi || q.Session != s.ID() {
				return zktest.Verdict{}
			}
			time.AfterFunc(time.Millisecond, cancel)
			return zktest.Verdict{Fate: zktest.Fail, Code: -4} // its outcome is not known, and it was not made
		})
		registers := phase(ctx, p.Register)
		require.NoError(t, held.WaitHeld(t.Context()))
		e.Disconnect(s.ID())
		<-registers.done
		require.ErrorIs(t, registers.err, context.Canceled)
		comesBack(t, e, s)
		held.Release()
		time.Sleep(time.Second)
		n, err := other.UnarrivedParties(context.Background())
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

// The request of a registration lies in the queue of a server while another one is made elsewhere; it is applied when
// the party has left, and nobody knows of the party that it makes.
func TestARegistrationThatLingersInAServerCountsOnce(t *testing.T) {
	for _, leave := range []bool{false, true} {
		amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
			s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
			p, other := zkphaser.New(s, phaserPath), zkphaser.New(e.SessionAt(t, 2), phaserPath)
			gives := func(want int, f func(context.Context) (int, error)) {
				n, err := f(context.Background())
				require.NoError(t, err)
				require.Equal(t, want, n)
			}
			gives(0, other.Register)
			held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
			registers := phase(context.Background(), p.Register)
			require.NoError(t, held.WaitHeld(t.Context()))
			e.Disconnect(s.ID())
			<-registers.done
			require.NoError(t, registers.err)
			arrived := 1
			if leave {
				gives(0, p.ArriveAndDeregister)
				arrived = 0
			} else {
				gives(0, p.Arrive)
			}
			comesBack(t, e, s)
			held.Release()
			time.Sleep(time.Second)
			gives(1, other.UnarrivedParties)
			gives(arrived, other.ArrivedParties)
			gives(0, other.Arrive)
			gives(1, other.Phase)
		})
	}
}
