package zksync_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// On a slow link each answer finds the proof too old to go on with. That must not have as many heartbeats
// circulate as there were writes.
func TestWritesOverASlowLinkLeaveNoHeartbeatsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const T = 10 * time.Second
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(T))
		var syncs atomic.Int32
		srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Sync {
				syncs.Add(1)
			}
			return zktest.Verdict{}
		})
		srv.Delay(s.ID(), 0, T/4)
		m := zksync.NewMutex(s, "/locks/a")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(3 * T)
		count := func() int32 {
			syncs.Store(0)
			time.Sleep(T)
			return syncs.Load()
		}
		before := count()
		var all sync.WaitGroup
		for i := range 500 { // writes, each on its own
			all.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				_, _ = l.Guard(t.Context())
			})
		}
		all.Wait()
		time.Sleep(3 * T)
		require.LessOrEqual(t, count(), before+before/4, "%d a timeout before", before)
		require.True(t, l.Valid())
		srv.Delay(s.ID(), 0, 0)
		require.NoError(t, l.Unlock())
	})
}
