package mutex_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Connections that do not live long enough for a look: how much is under way after each?
func TestLooksForDoubtfulNodesDoNotPileUp(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(10 * time.Second))
		m := zksync.NewMutex(s, proving.LockPath)
		require.NoError(t, v.Lock(m).Unlock())
		// One create is lost with its connection, so it is in doubt; from then on for a while each
		// connection is lost when the 4th request comes.
		var bad atomic.Bool
		var n, syncs atomic.Int32
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session != s.ID() || !bad.Load() {
				return zktest.Verdict{}
			}
			switch q.Op {
			case zktest.Connect, zktest.Ping, zktest.CloseSession:
				return zktest.Verdict{}
			}
			syncs.Add(1)
			if n.Add(1)%4 == 1 {
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		bad.Store(true)
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for range 40 {
			c, stop := context.WithTimeout(ctx, 100*time.Millisecond)
			if l, err := m.LockContext(c); err == nil {
				_ = l.Unlock()
			}
			stop()
		}
		t.Logf("%d goroutines more, %d requests", runtime.NumGoroutine()-before, syncs.Load())
		require.Less(t, runtime.NumGoroutine()-before, 20)
		bad.Store(false)
	})
}
