package waitgroup_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// The second Add, a write to the record at version 0, lies in the queue of a server. Meanwhile another process says that the first
// member is done, the round is over and the record removed; the Add makes the record again, again with version 0.
func TestAnAddThatLingersAppliesToNoRecordMadeAgain(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		background := context.Background()
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		g, other := zkwaitgroup.New(s, proving.GroupPath), zkwaitgroup.New(e.SessionAt(t, 2), proving.GroupPath)
		counts := func(want int) {
			n, err := other.Count(background)
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		require.NoError(t, g.AddContext(background, 1))
		held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
		adds := proving.Waits(background, func(ctx context.Context) error { return g.AddContext(ctx, 1) })
		require.NoError(t, held.WaitHeld(t.Context()))
		// It looks only after the round is over.
		looks := make(chan struct{})
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session == s.ID() && q.Op == zktest.Sync {
				return zktest.Verdict{Hold: looks}
			}
			return zktest.Verdict{}
		})
		e.Disconnect(s.ID())
		require.NoError(t, other.DoneContext(background), "of the first member")
		require.NoError(t, other.WaitContext(background))
		close(looks)
		<-adds.Done
		require.NoError(t, adds.Err)
		counts(1)
		proving.ComesBack(t, e, s)
		held.Release()
		synctest.Wait()
		time.Sleep(20 * time.Second) // two session timeouts
		counts(1)
		require.NoError(t, g.DoneContext(background))
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		require.NoError(t, other.WaitContext(ctx))
	})
}

// The request of the second Add is lost, and an operator removes the node in alive of the first before the look.
func TestALostAddIsNotTakenForTheOneBefore(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g, other := zkwaitgroup.New(s, proving.GroupPath), zkwaitgroup.New(v.Session(), proving.GroupPath)
		require.NoError(t, other.AddContext(t.Context(), 1))
		require.NoError(t, g.AddContext(t.Context(), 1))
		alive := ""
		for _, n := range v.Server.Children(proving.GroupPath + "/round/alive") {
			if node, _ := v.Server.Node(proving.GroupPath + "/round/alive/" + n); node.Stat.EphemeralOwner == s.ID() {
				alive = proving.GroupPath + "/round/alive/" + n
			}
		}
		require.NotEmpty(t, alive)
		lost := v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Times(1).LoseRequest())
		looks := v.Server.Intercept(zktest.On(zktest.Sync, "**").Of(s.ID()).Hold())
		adds := proving.Waits(context.Background(), func(ctx context.Context) error { return g.AddContext(ctx, 1) })
		require.NoError(t, looks.WaitHeld(t.Context()))
		require.Equal(t, 1, lost.Fired())
		v.Server.Delete(alive)
		looks.Remove()
		<-adds.Done
		require.NoError(t, adds.Err)
		n, err := other.Count(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, n, "the member of other, and the one that was added last")
	})
}
