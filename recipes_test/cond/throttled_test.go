package cond_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The form without errors has nobody to tell, so it goes on until the servers answer; it does not panic.
func TestASignalOutlastsServersThatThrottle(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Session()
		waits := zkcond.New(zksync.NewMutex(other, proving.LockPath), proving.CondPath)
		woken := make(chan struct{})
		go func() {
			waits.L.Lock()
			waits.Wait()
			waits.L.Unlock()
			close(woken)
		}()
		v.Queued(proving.CondPath, 1)
		c := zkcond.New(zksync.NewMutex(s, proving.LockPath), proving.CondPath)
		c.L.Lock()
		start := time.Now()
		heal := v.Server.SetError(zktest.CodeThrottled, zktest.GetData, zktest.GetChildren, zktest.Multi)
		time.AfterFunc(5*time.Second, heal)
		c.Broadcast()
		require.GreaterOrEqual(t, time.Since(start), 5*time.Second)
		c.L.Unlock()
		v.Awaits(woken, "the waiter")
	})
}
