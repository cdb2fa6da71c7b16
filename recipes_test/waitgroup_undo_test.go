package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// A process whose member died, and that will not say that it is done, gives up an Add.
func TestAnAddThatIsTakenBackIsNotMistakenForAMemberThatDied(t *testing.T) {
	for _, reported := range []bool{false, true} {
		inProcess(t, func(t *testing.T, v *env) {
			s := v.session()
			g, other := zkwaitgroup.New(s, groupPath), v.groups(1)[0]
			require.NoError(t, g.AddContext(context.Background(), 1))
			if !reported {
				require.NoError(t, other.AddContext(context.Background(), 1)) // who keeps the round going
			}
			v.srv.Expire(s.ID())
			v.later()
			if reported {
				require.ErrorAs(t, other.WaitContext(context.Background()), new(*zkwaitgroup.DeadMembersError))
			}
			ctx, cancel := context.WithCancel(context.Background())
			v.strike(1, zktest.LoseReply)
			allow := v.srv.Refuse()
			adds := waits(ctx, func(ctx context.Context) error { return g.AddContext(ctx, 1) })
			v.quiet()
			cancel()
			require.ErrorIs(t, v.failed(adds), context.Canceled)
			allow()
			v.later()
			if !reported {
				v.remaining(other, 1)
				require.NoError(t, other.DoneContext(context.Background()))
			}
			v.remaining(other, 0)
		})
	}
}

// The answer to an Add is lost, the session ends, and the Done of the last of its members arrives twice.
func TestADoneForTheDeadThatArrivesTwiceIsNoMisuse(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		g, other := zkwaitgroup.New(s, groupPath), v.groups(1)[0]
		require.NoError(t, other.AddContext(context.Background(), 1))
		v.strike(1, zktest.LoseReply)
		require.NoError(t, g.AddContext(context.Background(), 1))
		v.srv.Expire(s.ID())
		v.later()
		v.srv.Intercept(zktest.On(zktest.Multi, "**").Nth(1).Duplicate())
		require.NoError(t, g.DoneContext(context.Background()))
		v.remaining(other, 1)
	})
}
