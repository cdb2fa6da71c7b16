package mutex_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Each time the connection is lost with the read that is to watch the holder's own node. Both the read and the watch tell of
// that, and the node must be watched once.
func TestALostConnectionHasTheOwnNodeWatchedOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(zksync.WithTimeout(40*time.Second)), proving.LockPath)
		l, err := m.LockContext(context.Background())
		require.NoError(t, err)
		var reads atomic.Int32
		heal := v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
			if q.Op == zktest.GetData && q.Path == l.Node() {
				if reads.Add(1) <= 12 {
					verdict.Fate = zktest.LoseReply
				}
			}
			return verdict
		})
		defer heal()
		before := v.Goroutines()
		l.Done()
		time.Sleep(30 * time.Second)
		require.LessOrEqual(t, reads.Load(), int32(13))
		require.NoError(t, l.Err())
		require.LessOrEqual(t, v.Goroutines(), before+2)
		v.Remove(l.Node())
		<-l.Done()
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
	})
}
