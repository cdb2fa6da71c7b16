package barrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The first request of a party lies in the queue of a server. The second one is refused because another party has the turn.
// Then the first one is applied.
func TestANodeOfALingeringArrivalDoesNotOutliveAWaitForTheTurn(t *testing.T) {
	for _, how := range []string{"the party gives up", "a Reset"} {
		t.Run(how, func(t *testing.T) {
			proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				bs := []*zkbarrier.Barrier{zkbarrier.NewBarrier(s, proving.BarrierPath, 2), zkbarrier.NewBarrier(e.SessionAt(t, 2), proving.BarrierPath, 2)}
				for _, a := range awaitAll(t.Context(), bs...) {
					<-a.done
					require.NoError(t, a.err)
				}
				// Another party has the turn.
				conn, acl := e.ConnectAt(t, 2, 10*time.Second), zk.WorldACL(zk.PermAll)
				_, err := conn.Create(proving.BarrierPath+"/turns", nil, 0, acl)
				require.NoError(t, err)
				first, err := conn.Create(proving.BarrierPath+"/turns/"+node.Prefix(node.NewUUID())+"-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, acl)
				require.NoError(t, err)
				_, err = conn.Create(proving.BarrierPath+"/turn", nil, zk.FlagEphemeral, acl)
				require.NoError(t, err)

				late := e.Intercept(zktest.On(zktest.Create, proving.BarrierPath+"/parties-1/*").Of(s.ID()).Nth(1).Hold().Queued())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				a := await(ctx, bs[0])
				require.NoError(t, late.WaitHeld(t.Context()))
				e.Disconnect(s.ID())
				time.Sleep(200 * time.Millisecond)
				require.NotEqual(t, 0, e.At(s.ID()))
				require.Len(t, e.Server(2).Children(proving.BarrierPath+"/turns"), 2, "it queues for the turn")
				require.NoError(t, conn.Delete(proving.BarrierPath+"/turn", -1)) // the other party opens the gate, and still has its place
				for range 2 {
					e.Disconnect(s.ID())
					time.Sleep(200 * time.Millisecond)
				}
				require.Equal(t, 0, e.At(s.ID()))
				require.True(t, a.pending())
				late.Release()
				time.Sleep(100 * time.Millisecond)
				require.Len(t, e.Server(2).Children(proving.BarrierPath+"/parties-1"), 1)
				if how == "a Reset" {
					require.NoError(t, bs[1].Reset(t.Context()))
					require.NoError(t, conn.Delete(first, -1))
					<-a.done
				} else {
					cancel()
					<-a.done
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				require.Empty(t, e.Server(2).Children(proving.BarrierPath+"/parties-1"), "nodes in the broken generation")
			})
		})
	}
}
