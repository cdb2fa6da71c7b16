package phaser_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The last party leaves, and before it has had the phaser terminate another one registers and
// arrives.
func TestAPhaserDoesNotTerminateOverTheHeadOfANewcomer(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ps := phasers(v, 3)
		v.Gives(0, ps[0].Register)
		held := v.Server.Intercept(zktest.On(zktest.Delete, proving.PhaserPath+"/phase-0").Hold())
		leaves := phase(context.Background(), ps[0].ArriveAndDeregister)
		require.NoError(t, held.WaitHeld(t.Context()))
		v.Gives(0, ps[1].Register)
		arrives := phase(context.Background(), ps[1].Arrive)
		v.Quiet()
		require.Equal(t, 2, held.Held(), "both are about to have it advance")
		held.ReleaseOne()
		hasArrived(v, leaves, 0)
		held.Remove()
		hasArrived(v, arrives, 0)
		v.Gives(1, ps[2].Phase)
		census(v, ps[2], 0, 1)
		v.Gives(1, ps[1].ArriveAndDeregister)
		v.Gives(terminated+2, ps[2].Phase)
	})
}

// An arrival whose answer is lost, and whose context ends, stands; the others go on to the next
// phase. Then the party leaves, which is an arrival at the next one, the last.
func TestAPartyThatLeavesAfterAnArrivalInDoubtKeepsNobodyWaiting(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ps := phasers(v, 2)
		v.Gives(0, ps[0].Register)
		v.Gives(0, ps[1].Register)
		ctx, cancel := context.WithCancel(context.Background())
		v.Strike(1, zktest.LoseReply)
		allow := v.Server.Refuse()
		arrives := phase(ctx, ps[0].Arrive)
		v.Quiet()
		cancel()
		require.ErrorIs(t, v.Failed(arrives.Attempt), context.Canceled)
		v.Gives(0, ps[1].Arrive)
		v.Gives(1, ps[1].Arrive)
		allow()
		v.Gives(0, ps[0].ArriveAndDeregister)
		v.Gives(2, ps[1].Phase)
		census(v, ps[1], 0, 1)
	})
}

// The last one who had to arrive dies, and nobody waits; but somebody comes for the next phase.
func TestAnArrivalAtTheNextPhaseNoticesThatThePhaseIsOver(t *testing.T) {
	for _, action := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var opts []zksync.Option
			if action {
				opts = append(opts, zkphaser.WithOnAdvance(func(_ context.Context, _, registered int) bool { return registered == 0 }))
			}
			p, dying := phasers(v, 1, opts...)[0], v.Session()
			v.Gives(0, p.Register)
			v.Gives(0, zkphaser.New(dying, proving.PhaserPath, opts...).Register)
			v.Gives(0, p.Arrive)
			_, err := p.Arrive(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse, "the other one has still to arrive")
			v.Server.Expire(dying.ID())
			v.Gives(1, p.Arrive)
			v.Gives(2, p.ArriveAndDeregister)
			v.Gives(terminated+3, p.Phase)
		})
	}
}

// The request of an arrival lies in the queue of a server while its session goes to others; and it is applied while the look is under
// way with which its party finds out what became of it, because the session comes back.
func TestAnArrivalThatIsAppliedWhileItsPartyLooksForItStands(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		p, other := zkphaser.New(s, proving.PhaserPath), zkphaser.New(e.SessionAt(t, 2), proving.PhaserPath)
		gives := func(want int, f func(context.Context) (int, error)) {
			n, err := f(context.Background())
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		gives(0, p.Register)
		gives(0, other.Register)
		held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
		look := e.Intercept(zktest.On(zktest.Exists, proving.PhaserPath+"/phase-*/*").Of(s.ID()).Hold())
		arrives := phase(context.Background(), p.Arrive)
		require.NoError(t, held.WaitHeld(t.Context()))
		e.Disconnect(s.ID())
		time.Sleep(100 * time.Millisecond)
		proving.ComesBack(t, e, s)
		require.NoError(t, look.WaitHeld(t.Context())) // where the request lies
		require.Equal(t, 0, e.At(s.ID()))
		held.Release()
		synctest.Wait()
		require.Len(t, e.Server(0).Children(proving.PhaserPath+"/phase-1"), 1, "it is applied")
		look.Remove()
		<-arrives.Done
		require.NoError(t, arrives.Err)
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
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		p, other := zkphaser.New(s, proving.PhaserPath), zkphaser.New(e.SessionAt(t, 2), proving.PhaserPath)
		_, err := other.Register(context.Background())
		require.NoError(t, err)
		held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
		ctx, cancel := context.WithCancel(context.Background())
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op != zktest.Multi || q.Session != s.ID() {
				return zktest.Verdict{}
			}
			time.AfterFunc(time.Millisecond, cancel)
			return zktest.Verdict{Fate: zktest.Fail, Code: zktest.CodeMarshalling} // its outcome is not known, and it was not made
		})
		registers := phase(ctx, p.Register)
		require.NoError(t, held.WaitHeld(t.Context()))
		e.Disconnect(s.ID())
		<-registers.Done
		require.ErrorIs(t, registers.Err, context.Canceled)
		proving.ComesBack(t, e, s)
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
		proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
			s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
			p, other := zkphaser.New(s, proving.PhaserPath), zkphaser.New(e.SessionAt(t, 2), proving.PhaserPath)
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
			<-registers.Done
			require.NoError(t, registers.Err)
			arrived := 1
			if leave {
				gives(0, p.ArriveAndDeregister)
				arrived = 0
			} else {
				gives(0, p.Arrive)
			}
			proving.ComesBack(t, e, s)
			held.Release()
			time.Sleep(time.Second)
			gives(1, other.UnarrivedParties)
			gives(arrived, other.ArrivedParties)
			gives(0, other.Arrive)
			gives(1, other.Phase)
		})
	}
}
