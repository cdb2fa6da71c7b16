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
			var opts []zkbarrier.PhaserOption
			if action {
				opts = append(opts, zkbarrier.WithOnAdvance(func(_ context.Context, _, registered int) bool { return registered == 0 }))
			}
			p, dying := v.phasers(1, opts...)[0], v.session()
			v.gives(0, p.Register)
			v.gives(0, zkbarrier.NewPhaser(dying, phaserPath, opts...).Register)
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

// The request of an arrival lingers in a server after its connection was lost, and is applied between
// the two looks with which its party finds out what became of it.
func TestAnArrivalThatIsAppliedWhileItsPartyLooksForItStands(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		p, other := zkbarrier.NewPhaser(s, phaserPath), v.phasers(1)[0]
		v.gives(0, p.Register)
		v.gives(0, other.Register)
		held := v.srv.Intercept(zktest.On(zktest.Multi, "**").Session(s.ID()).Times(1).Hold())
		looks := 0
		v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op != zktest.Exists || q.Session != s.ID() {
				return zktest.Verdict{}
			}
			if looks++; looks > 1 {
				return zktest.Verdict{}
			}
			time.AfterFunc(time.Millisecond, held.Release) // behind the first look
			return zktest.Verdict{}
		})
		v.srv.Delay(s.ID(), 2*time.Millisecond, 2*time.Millisecond)
		arrives := phase(context.Background(), p.Arrive)
		require.NoError(t, held.WaitHeld(t.Context()))
		v.srv.Disconnect(s.ID())
		v.arrives(arrives, 0)
		v.census(other, 1, 1)
		v.gives(0, other.Arrive)
		v.gives(1, other.Arrive)
		v.gives(1, p.Arrive)
		v.gives(2, other.Phase)
	})
}
