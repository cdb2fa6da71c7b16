package election_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

// Curator's getLeader shows the data of the node as text.
func TestTheNodeOfACandidateWithABareIDHasNothingElse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		e := zkelection.New(v.Session(), proving.ElectionPath, zkelection.Candidate{ID: "web-1"}, zkelection.WithBareID())
		l := v.Get(e.Campaign)
		require.Equal(t, "web-1", v.Data(l.Node()))
		leader, err := elections(v, 1)[0].Leader(ctx)
		require.NoError(t, err)
		require.Equal(t, "web-1", leader.ID)
		require.ErrorIs(t, e.SetData(ctx, []byte("x")), zksync.ErrMisuse)
		require.NoError(t, l.Unlock())
		_, err = zkelection.New(v.Session(), proving.ElectionPath, zkelection.Candidate{ID: "a", Data: []byte("x")}, zkelection.WithBareID()).Campaign(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorIs(t, zksync.NewMutex(v.Session(), proving.LockPath, zkelection.WithBareID()).Do(ctx, nil), zksync.ErrMisuse)
	})
}
