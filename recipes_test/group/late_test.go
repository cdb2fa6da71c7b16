package zkgroup_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
)

// A function that is done only when its member is in the next session already has done its item for all.
func TestAnItemThatIsDoneAfterTheNextSessionBeganIsRecorded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g := zkgroup.New(s, groupPath)
		m := joins(v, g, "a", "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		finish, ends, runs := make(chan bool), make(chan error, 1), 0
		go func() {
			ends <- g.Assign(ctx, m, []string{"x"}, func(context.Context, string, *zksync.Lease) error { runs++; <-finish; return nil })
		}()
		v.Queued(groupPath+"/zkgroup/items/x", 1)
		v.Quiet()
		v.Server.Expire(s.ID())
		time.Sleep(5 * time.Second)
		finish <- true
		close(finish)
		v.Quiet()

		other := zkgroup.New(v.Session(), groupPath)
		mb := joins(v, other, "b", "")
		bctx, stop := context.WithCancel(t.Context())
		defer stop()
		bends, ran := make(chan error, 1), false
		go func() {
			bends <- other.Assign(bctx, mb, []string{"x"}, func(context.Context, string, *zksync.Lease) error { ran = true; return nil })
		}()
		v.Quiet()
		cancel()
		require.NoError(t, <-ends)
		v.Quiet()
		stop()
		require.NoError(t, <-bends)
		require.Equal(t, 1, runs, "by the member that has done it")
		require.False(t, ran, "the item was done")
	})
}
