package rwmutex_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// Every request of small scenarios is struck with every fault, as recipes_test/faults does it for the
// mutex: everybody finishes, nothing is left behind, and the next use works.

func TestEveryFaultLeavesTheReadWriteLockSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		rw := rws(v, 3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var s proving.Section
			var all sync.WaitGroup
			all.Go(func() { // writes, downgrades, and reads what it wrote
				write, err := rw[0].LockContext(ctx)
				require.NoError(t, err, name)
				s.Pass()
				read, err := rw[0].Downgrade(ctx, write)
				require.NoError(t, err, name)
				n := s.Count
				<-time.After(10 * time.Millisecond)
				require.Equal(t, n, s.Count, "%s: a writer was inside while this one read", name)
				require.Positive(t, read.Token().Compare(write.Token()), name)
				require.NoError(t, read.Unlock(), name)
			})
			all.Go(func() {
				require.NoError(t, rw[1].Do(ctx, func(context.Context, *zksync.Lease) error { s.Pass(); return nil }), name)
			})
			all.Go(func() {
				require.NoError(t, rw[2].RDo(ctx, func(context.Context, *zksync.Lease) error {
					n := s.Count
					<-time.After(10 * time.Millisecond)
					require.Equal(t, n, s.Count, "%s: a writer was inside while this one read", name)
					return nil
				}), name)
			})
			all.Wait()
			s.Check(t, 2)
			v.Later()
			require.Empty(t, v.Server.Children(proving.LockPath), name)
			require.NoError(t, v.Get(rw[1].LockContext).Unlock(), name)
		}
	})
}
