package waitgroup_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

func TestMembersOfAWaitGroupAreDeadWhenTheirTappedSessionCloses(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Tapped(), groups(v, 1)[0]
		require.NoError(t, zkwaitgroup.New(s, proving.GroupPath).AddContext(context.Background(), 2))
		w := proving.Waits(context.Background(), other.WaitContext)
		v.Quiet()
		v.ClosesLeavingNothing(s)
		var dead *zkwaitgroup.DeadMembersError
		require.ErrorAs(t, v.Failed(w), &dead)
		require.Equal(t, 2, dead.Members[0].N)
	})
}

// The answer is on its way: whether the member was added nobody finds out any more.
func TestAMemberThatIsBeingAddedIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Tapped()
		groups(v, 1)[0].Add(1)
		g := zkwaitgroup.New(s, proving.GroupPath)
		v.Server.Delay(s.ID(), 0, 100*time.Millisecond)
		w := proving.Waits(context.Background(), func(ctx context.Context) error { return g.AddContext(ctx, 1) })
		time.Sleep(50 * time.Millisecond)
		id := s.ID()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.Failed(w), zksync.ErrClosed)
		v.Later()
		zktest.CheckEphemerals(t, v.Server, id)
	})
}
