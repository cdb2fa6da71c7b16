package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Of many ahead nobody may be in the way, or all may leave at once: there are no hand-overs to wait for.
func TestBehindManyThatHoldTogetherNobodyWaitsToList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		holders, s := srv.Session(t), srv.Session(t)
		rw := zkrwmutex.New(s, "/rw")
		permits := func(s *zksync.Session) *zksemaphore.Weighted { return zksemaphore.NewWeighted(s, "/permits", 1000) }
		var readers []*zksync.Lease
		for range deep + 1 {
			r, err := zkrwmutex.New(holders, "/rw").RLockContext(t.Context())
			require.NoError(t, err)
			readers = append(readers, r)
			require.NoError(t, permits(holders).Acquire(t.Context(), 1))
		}
		began := time.Now()
		rw.RLock()
		rw.RUnlock()
		require.True(t, rw.TryRLock())
		rw.RUnlock()
		require.NoError(t, permits(s).Acquire(t.Context(), 1))
		require.True(t, permits(s).TryAcquire(1))
		written := make(chan struct{})
		go func() {
			rw.Lock()
			close(written)
		}()
		synctest.Wait()
		for _, r := range readers {
			require.NoError(t, r.Unlock())
		}
		<-written
		require.Zero(t, time.Since(began))
		rw.Unlock()
	})
}
