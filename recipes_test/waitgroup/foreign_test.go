package waitgroup_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// Somebody has written a number of members that no list can have.
func TestMissingRefusesMoreMembersThanAListCanHave(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		g := zkwaitgroup.New(v.Session(), proving.GroupPath)
		require.NoError(t, g.AddContext(ctx, 1))
		records := proving.GroupPath + "/round/members"
		v.Server.Set(records+"/"+v.Server.Children(records)[0], []byte(`{"n":2000000}`))
		missing, err := g.Missing(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, proving.GroupPath)
		require.Empty(t, missing)
		all, err := g.Members(ctx)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, 2_000_000, all[0].N)
	})
}

func TestAGroupWithoutTheNodesOfItsMembersIsBroken(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		gs := groups(v, 2)
		require.NoError(t, gs[0].AddContext(ctx, 2))
		v.Server.DeleteAll(proving.GroupPath + "/round/alive")
		require.ErrorIs(t, gs[0].DoneContext(ctx), zksync.ErrBroken)
		require.ErrorIs(t, gs[0].AddContext(ctx, 1), zksync.ErrBroken)
		require.ErrorIs(t, gs[1].AddContext(ctx, 1), zksync.ErrBroken)
		v.Server.DeleteAll(proving.GroupPath + "/round")
		require.NoError(t, gs[1].AddContext(ctx, 1))
		require.NoError(t, gs[1].DoneContext(ctx))
		v.NothingLeft(proving.GroupPath)
	})
}
