package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Without optional parts a tracer costs one allocation for an acquisition: what is known of it between its start and its end.
func TestHooksThatAreNotSetCostNothing(t *testing.T) {
	cost := map[string]map[string]float64{}
	requests := map[string]int{}
	for name, tracer := range map[string]zksync.Tracer{"none": nil, "plain": plain{}} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			s := srv.Session(t, zksync.WithTracer(tracer))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pair := func(m *zksync.Mutex) func() {
				f := func() {
					l, err := m.LockContext(ctx)
					if err != nil || l.Unlock() != nil {
						t.Error("lost or refused", err)
					}
				}
				f()
				return f
			}
			alone := pair(zksync.NewMutex(s, "/locks/alone"))
			before := srv.Requests()
			alone()
			requests[name] = srv.Requests() - before

			m := zksync.NewMutex(s, "/locks/handed", zksync.WithHandover(1<<30))
			l, err := m.LockContext(ctx)
			require.NoError(t, err)
			leases := make(chan *zksync.Lease)
			handOver := func() {
				go func() {
					next, _ := m.LockContext(ctx)
					leases <- next
				}()
				synctest.Wait()
				_ = l.Unlock()
				l = <-leases
			}
			cost[name] = map[string]float64{
				"pair":      testing.AllocsPerRun(1000, alone),
				"lingering": testing.AllocsPerRun(1000, pair(zksync.NewMutex(s, "/locks/lingers", zksync.WithLinger(time.Minute)))),
				"hand-over": testing.AllocsPerRun(1000, handOver),
			}
			require.NoError(t, l.Unlock())
		})
	}
	t.Log(cost)
	require.Equal(t, 1.0, cost["none"]["lingering"], "the lease")
	require.Equal(t, cost["none"]["lingering"]+1, cost["plain"]["lingering"])
	require.Equal(t, cost["none"]["hand-over"]+1, cost["plain"]["hand-over"])
	require.LessOrEqual(t, cost["plain"]["pair"], cost["none"]["pair"]+2, "with those of the server, which vary by one")
	require.Equal(t, 2, requests["none"])
	require.Equal(t, 2, requests["plain"])
}
