package semaphore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
)

func TestEveryFaultLeavesTheSemaphoreSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		var sems []*zksemaphore.Weighted
		for range 3 {
			sems = append(sems, zksemaphore.NewWeighted(v.Session(), proving.SemPath, 3))
		}
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var mu sync.Mutex
			taken, most := int64(0), int64(0)
			count := func(n int64) {
				mu.Lock()
				defer mu.Unlock()
				taken += n
				most = max(most, taken)
			}
			var all sync.WaitGroup
			for i, w := range sems {
				all.Go(func() {
					n := int64(i + 1)
					require.NoError(t, w.Acquire(ctx, n), name)
					count(n)
					<-time.After(10 * time.Millisecond)
					for range n { // one by one
						count(-1)
						w.Release(1)
					}
				})
			}
			all.Wait()
			require.LessOrEqual(t, most, int64(3), name)
			v.Later()
			require.Empty(t, v.Server.Children(proving.SemQueue), name)
			available(v, 3, sems[0])
		}
	})
}
