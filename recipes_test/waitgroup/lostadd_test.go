package waitgroup_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

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
