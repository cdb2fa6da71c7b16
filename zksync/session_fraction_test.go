package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// "The client stops after five missed heartbeats, the server frees after ten."
func TestALeaseFractionEndsTheLeaseEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(10*time.Second), zksync.WithLeaseFraction(0.5))
		l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.True(t, l.Valid(), "a session that is well keeps its lease")
		id := s.ID()
		expired := make(chan time.Time, 2)
		srv.OnSessionExpired(func(i int64, at time.Time) {
			if i == id {
				expired <- at
			}
		})
		cut := time.Now()
		heal := srv.Partition(id)
		<-l.Done()
		told := time.Since(cut)
		require.LessOrEqual(t, told, 5*time.Second)
		// The newest proof is a ping of a third of the span ago at most.
		require.Greater(t, told, 3*time.Second)
		require.GreaterOrEqual(t, (<-expired).Sub(cut), told+5*time.Second-2*time.Second)
		heal()
	})
}

func TestALeaseFractionMustBeAFraction(t *testing.T) {
	for _, f := range []float64{0, -1, 1.5} {
		_, err := zksync.Connect(t.Context(), "zk:1", zksync.WithLeaseFraction(f))
		require.ErrorIs(t, err, zksync.ErrMisuse)
	}
}
