package zkgroup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The worker's node is made together with its round. What is left of the round before is removed after that.
func TestAWorkerOutlivesAnswersThatSettleNothingWhileItBuriesARound(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		works := func(ctx context.Context, s *zksync.Session, id string) error {
			g := zkgroup.New(s, groupPath)
			m := joins(v, g, id, "")
			err := g.Assign(ctx, m, []string{"i"}, func(ctx context.Context, _ string, _ *zksync.Lease) error { <-ctx.Done(); return ctx.Err() })
			return errors.Join(err, m.Leave(context.WithoutCancel(ctx)))
		}
		dead, s := v.Session(), v.Session()
		go works(t.Context(), dead, "dead")
		time.Sleep(time.Second)
		heal := v.Server.ExpireSilently(dead.ID())
		for range 2 {
			clear := v.Server.SetError(zktest.CodeSessionMoved, zktest.GetChildren)
			time.AfterFunc(time.Second, clear)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			require.NoError(t, works(ctx, s, "a"))
		}
		heal()
	})
}

// The worker's node is made together with its round. Then the Assign fails, because another program has added to what is left of the round
// before. The node must not stay: the others would give it items that it does not run.
func TestAnAssignThatFailsWhileItBuriesARoundLeavesNoNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dead := v.Session()
		g := zkgroup.New(dead, groupPath)
		m := joins(v, g, "dead", "")
		go func() { _ = g.Assign(t.Context(), m, items(1), untilEnd) }()
		base := groupPath + "/zkgroup/"
		v.Queued(base+"working", 1)
		v.Quiet()
		round := base + "round-" + v.Data(base+"working")
		v.Put(round+"/"+v.Children(round)[0]+"/note", "")
		defer v.Server.ExpireSilently(dead.ID())()
		g = zkgroup.New(v.Session(), groupPath)
		m = joins(v, g, "a", "")
		require.ErrorIs(t, g.Assign(t.Context(), m, items(1), untilEnd), zk.ErrNotEmpty)
		require.Empty(t, v.Children(base+"working"))
		require.NoError(t, g.Assign(t.Context(), m, items(1), func(context.Context, string, *zksync.Lease) error { return zkgroup.Stop(nil) }))
	})
}
