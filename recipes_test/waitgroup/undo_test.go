package waitgroup_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// A process whose member died, and that will not say that it is done, gives up an Add.
func TestAnAddThatIsTakenBackIsNotMistakenForAMemberThatDied(t *testing.T) {
	for _, reported := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
			require.NoError(t, g.AddContext(context.Background(), 1))
			if !reported {
				require.NoError(t, other.AddContext(context.Background(), 1)) // who keeps the round going
			}
			v.Server.Expire(s.ID())
			v.Later()
			if reported {
				require.ErrorAs(t, other.WaitContext(context.Background()), new(*zkwaitgroup.DeadMembersError))
			}
			ctx, cancel := context.WithCancel(context.Background())
			v.Strike(1, zktest.LoseReply)
			allow := v.Server.Refuse()
			adds := proving.Waits(ctx, func(ctx context.Context) error { return g.AddContext(ctx, 1) })
			v.Quiet()
			cancel()
			require.ErrorIs(t, v.Failed(adds), context.Canceled)
			allow()
			v.Later()
			if !reported {
				v.Remaining(other, 1)
				require.NoError(t, other.DoneContext(context.Background()))
			}
			v.Remaining(other, 0)
		})
	}
}

// The answer to an Add is lost, and its session lives on for a while after its process has given it up. The next session has
// the members again. The first ones have no calls of Done, so none may be taken for them.
func TestMembersThatWereAddedTwiceTakeNoDone(t *testing.T) {
	for _, dones := range [][]int{{-1, -1, -1}, {-3}} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			s := v.Session(zksync.WithTimeout(6 * time.Second))
			g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
			require.NoError(t, g.AddContext(ctx, 1))
			lost := s.ID()
			v.Server.Intercept(zktest.On(zktest.CloseSession, "**").Of(lost).LoseRequest())
			heal := v.Server.DropReplies(lost)
			require.NoError(t, g.AddContext(ctx, 2))
			require.NotEqual(t, lost, s.ID())
			heal()
			for _, n := range dones {
				require.NoError(t, g.AddContext(ctx, n))
			}
			v.Later()
			v.Remaining(other, 0)
			require.NotErrorIs(t, other.WaitContext(ctx), context.DeadlineExceeded)
		})
	}
}

// The members of an Add that was given up are to be removed, and their session is lost before that. They die with it: no other
// member may be taken for them, nor a Done be excused with their death.
func TestAnAddThatIsNotTakenBackInItsSessionTakesNoOtherMember(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(6 * time.Second))
		g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
		require.NoError(t, other.AddContext(t.Context(), 2))
		require.NoError(t, g.AddContext(t.Context(), 1))
		lost := s.ID()
		v.Quiet()
		v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(lost).DelayReply(time.Second).Times(1))
		ctx, cancel := context.WithCancel(t.Context())
		adds := proving.Waits(ctx, func(ctx context.Context) error { return g.AddContext(ctx, 1) })
		time.Sleep(500 * time.Millisecond)
		// Another process has the turn, so the members are not removed before this one has queued for it.
		v.Server.Create(proving.GroupPath+"/round/turn", nil, zk.FlagEphemeral, v.Session().ID())
		v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(lost).LoseRequest().Nth(2).Times(100))
		cancel()
		require.ErrorIs(t, v.Failed(adds), context.Canceled)
		time.Sleep(time.Second)
		v.Server.Expire(lost)
		v.Server.DeleteAll(proving.GroupPath + "/round/turn")
		v.Later()
		v.Remaining(other, 2)
		require.NoError(t, g.DoneContext(t.Context()), "it is for the member that died")
		v.Remaining(other, 2)
		require.NoError(t, g.DoneContext(t.Context()))
		v.Remaining(other, 1)
		require.NoError(t, other.DoneContext(t.Context()))
		require.ErrorIs(t, other.WaitContext(t.Context()), zksync.ErrBroken)
	})
}

// A Done is not applied, and its session lives on for a while after its process has given it up. The next Done is for a member of
// another WaitGroup, and not for the one that will die with that session.
func TestADoneThatWasLostWithItsSessionIsNotSaidAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		s := v.Session(zksync.WithTimeout(6 * time.Second))
		g, other := zkwaitgroup.New(s, proving.GroupPath), groups(v, 1)[0]
		require.NoError(t, other.AddContext(ctx, 1))
		require.NoError(t, g.AddContext(ctx, 1))
		lost := s.ID()
		v.Quiet()
		v.Server.Intercept(zktest.On(zktest.CloseSession, "**").Of(lost).LoseRequest())
		v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(lost).LoseRequest())
		done := proving.Waits(ctx, g.DoneContext)
		v.Quiet()
		heal := v.Server.DropReplies(lost)
		v.Eventually(func() bool { return s.ID() != 0 && s.ID() != lost }, "there is no next session")
		require.NoError(t, g.DoneContext(ctx))
		v.Awaits(done.Done, "the first Done")
		require.NoError(t, done.Err)
		heal()
		require.Equal(t, 1, len(v.Server.Children(proving.GroupPath+"/round/alive")))
		require.ErrorIs(t, other.WaitContext(ctx), zksync.ErrBroken)
	})
}

// Otherwise others would see its member for a moment, and a process that ends in it would leave a dead member.
func TestAnAddThatWasGivenUpBeforeItCouldBeSentIsNotSent(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(time.Minute))
		g := zkwaitgroup.New(s, proving.GroupPath)
		require.NoError(t, g.AddContext(t.Context(), 1))
		v.Quiet()
		allow := v.Server.Refuse()
		v.Server.Disconnect(s.ID())
		v.Quiet()
		sent := v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()))
		ctx, cancel := context.WithCancel(t.Context())
		givesUp := proving.Waits(ctx, func(ctx context.Context) error { return g.AddContext(ctx, 1) })
		v.Quiet()
		stays := proving.Waits(t.Context(), func(ctx context.Context) error { return g.AddContext(ctx, 2) })
		v.Quiet()
		cancel()
		require.ErrorIs(t, v.Failed(givesUp), context.Canceled)
		allow()
		v.Passes(stays)
		v.Later()
		require.Equal(t, 1, sent.Matched())
		v.Remaining(g, 3)
		require.NoError(t, g.AddContext(t.Context(), -3))
	})
}
