package waitgroup_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
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
