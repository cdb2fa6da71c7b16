package election_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestEveryFaultLeavesTheElectionSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		var es []*zkelection.Election
		for i := range 2 {
			es = append(es, candidate(v, v.Session(), i))
		}
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var s proving.Section
			var all sync.WaitGroup
			for _, e := range es {
				all.Go(func() {
					require.NoError(t, e.Run(ctx, func(context.Context, *zksync.Lease) error { s.Pass(); return nil }), name)
				})
			}
			all.Wait()
			s.Check(t, 2)
			v.Later()
			_, err := es[0].Leader(context.Background())
			require.ErrorIs(t, err, zksync.ErrNoLeader, name)
			require.Empty(t, v.Server.Children(proving.ElectionPath), name)
		}
	})
}
