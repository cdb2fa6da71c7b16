package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// Every request of small scenarios is struck with every fault, as recipes_test/faults does it for the
// mutex: everybody finishes, nothing is left behind, and the next use works.

func TestEveryFaultLeavesTheReadWriteLockSound(t *testing.T) {
	everyFault(t, func(t *testing.T, v *env) func(string) {
		rw := v.rws(3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var s section
			var all sync.WaitGroup
			all.Go(func() { // writes, downgrades, and reads what it wrote
				write, err := rw[0].LockContext(ctx)
				require.NoError(t, err, name)
				s.pass()
				read, err := rw[0].Downgrade(ctx, write)
				require.NoError(t, err, name)
				n := s.count
				<-time.After(10 * time.Millisecond)
				require.Equal(t, n, s.count, "%s: a writer was inside while this one read", name)
				require.Positive(t, read.Token().Compare(write.Token()), name)
				require.NoError(t, read.Unlock(), name)
			})
			all.Go(func() {
				require.NoError(t, rw[1].Do(ctx, func(context.Context, *zksync.Lease) error { s.pass(); return nil }), name)
			})
			all.Go(func() {
				require.NoError(t, rw[2].RDo(ctx, func(context.Context, *zksync.Lease) error {
					n := s.count
					<-time.After(10 * time.Millisecond)
					require.Equal(t, n, s.count, "%s: a writer was inside while this one read", name)
					return nil
				}), name)
			})
			all.Wait()
			s.check(t, 2)
			v.later()
			require.Empty(t, v.srv.Children(lockPath), name)
			require.NoError(t, v.get(rw[1].LockContext).Unlock(), name)
		}
	})
}

func TestEveryFaultLeavesTheSemaphoreSound(t *testing.T) {
	everyFault(t, func(t *testing.T, v *env) func(string) {
		var sems []*zksemaphore.Weighted
		for range 3 {
			sems = append(sems, zksemaphore.NewWeighted(v.session(), semPath, 3))
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
			v.later()
			require.Empty(t, v.srv.Children(semQueue), name)
			v.available(3, sems[0])
		}
	})
}

func TestEveryFaultLeavesTheElectionSound(t *testing.T) {
	everyFault(t, func(t *testing.T, v *env) func(string) {
		var es []*zkelection.Election
		for i := range 2 {
			es = append(es, v.candidate(v.session(), i))
		}
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var s section
			var all sync.WaitGroup
			for _, e := range es {
				all.Go(func() {
					require.NoError(t, e.Run(ctx, func(context.Context, *zksync.Lease) error { s.pass(); return nil }), name)
				})
			}
			all.Wait()
			s.check(t, 2)
			v.later()
			_, err := es[0].Leader(context.Background())
			require.ErrorIs(t, err, zksync.ErrNoLeader, name)
			require.Empty(t, v.srv.Children(electionPath), name)
		}
	})
}
