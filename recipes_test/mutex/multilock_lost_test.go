package mutex_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// The critical section of a hold that was lost runs on, in the same memory, until its Unlock; and that must not
// give up what another goroutine has locked meanwhile.
func TestALostMultiLockKeepsTheOtherGoroutinesOutUntilItIsUnlocked(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Session()
		both := zksync.MultiLock(zksync.NewMutex(s, "/multi/a"), zksync.NewMutex(s, "/multi/b"))
		both.Lock()
		locked := make(chan struct{})
		go func() {
			both.Lock()
			close(locked)
		}()
		v.Quiet()
		require.True(t, v.Server.Expire(s.ID()))
		time.Sleep(time.Minute)
		select {
		case <-locked:
			t.Error("two goroutines are in")
		default:
		}
		require.False(t, both.TryLock())
		both.Unlock()
		v.Awaits(locked, "the second goroutine to lock")
		require.False(t, zksync.NewMutex(other, "/multi/a").TryLock(), "it is locked by the second")
		both.Unlock()
		v.Later()
		require.True(t, zksync.NewMutex(other, "/multi/a").TryLock())
	})
}
