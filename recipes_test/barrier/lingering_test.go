package barrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The first request of a party lies in the queue of a server. It is applied after the party's last look, and before the
// generation breaks. Its node must not stay in the broken generation while the session lives.
func TestANodeOfALingeringArrivalDoesNotOutliveABrokenGeneration(t *testing.T) {
	for _, how := range []string{"the party gives up", "a Reset"} {
		t.Run(how, func(t *testing.T) {
			proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				bs := []*zkbarrier.Barrier{zkbarrier.NewBarrier(s, proving.BarrierPath, 2), zkbarrier.NewBarrier(e.SessionAt(t, 2), proving.BarrierPath, 2)}
				for _, a := range awaitAll(t.Context(), bs...) {
					<-a.done
					require.NoError(t, a.err)
				}
				late := e.Intercept(zktest.On(zktest.Create, proving.BarrierPath+"/*/*").Of(s.ID()).Nth(1).Hold().Queued())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				a := await(ctx, bs[0])
				require.NoError(t, late.WaitHeld(t.Context()))
				again := make(chan struct{})
				free := e.InterceptFunc(func(q *zktest.Request) (v zktest.Verdict) {
					if q.Session == s.ID() && q.Op == zktest.Multi {
						v.Hold = again
					}
					return v
				})
				for range 3 {
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
					close(again)
					free()
					time.Sleep(100 * time.Millisecond)
				} else {
					free()
					cancel()
					<-a.done
					close(again)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				require.Empty(t, e.Server(2).Children(proving.BarrierPath+"/parties-1"), "nodes in the broken generation")
			})
		})
	}
}
