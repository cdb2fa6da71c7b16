package zkgroup_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// An item moves while it is being done. Its next owner is granted by the event that the one before has left, which has recorded that the
// item is done. The connection breaks before the next owner has looked, and the next server lags.
func TestADoneItemDoesNotRunAgainAfterAMoveToAServerThatLags(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var arm sync.Once
		var armed atomic.Bool
		var mu sync.Mutex
		done := map[string]int{}
		works := func(s *zksync.Session, id string, f func(context.Context, string)) {
			g := zkgroup.New(s, groupPath)
			m, err := g.Join(ctx, zkgroup.Member{ID: id})
			require.NoError(t, err)
			go func() {
				_ = g.Assign(ctx, m, items(8), func(ctx context.Context, item string, _ *zksync.Lease) error {
					f(ctx, item)
					mu.Lock()
					defer mu.Unlock()
					done[item]++
					return nil
				})
			}()
		}
		a, b := e.SessionAt(t, 2, zksync.WithTimeout(10*time.Second)), e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		works(a, "a", func(ctx context.Context, _ string) {
			<-ctx.Done() // it is to move
			time.Sleep(5*time.Second + 50*time.Millisecond)
			arm.Do(func() {
				time.AfterFunc(4*time.Second, e.Lag(1))
				armed.Store(true)
			})
		})
		time.Sleep(time.Second)
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session == b.ID() && q.Op == zktest.Exists && armed.Swap(false) {
				e.Server(0).Refuse()
				e.Server(2).Refuse()
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		works(b, "b", func(context.Context, string) {})
		time.Sleep(30 * time.Second)
		cancel()
		time.Sleep(time.Minute)
		require.False(t, armed.Load())
		mu.Lock()
		defer mu.Unlock()
		require.NotEmpty(t, done)
		for item, n := range done {
			require.Equal(t, 1, n, item)
		}
	})
}
