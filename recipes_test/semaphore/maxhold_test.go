package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAPartialReleaseDoesNotBeginTheBoundOfAHoldAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		w := zksemaphore.NewWeighted(v.Session(), "/s", 3, zksync.WithMaxHold(10*time.Second))
		require.NoError(t, w.Acquire(context.Background(), 3))
		granted := time.Now()
		for range 2 {
			time.Sleep(4 * time.Second)
			w.Release(1)
		}
		time.Sleep(time.Until(granted.Add(10*time.Second - time.Millisecond)))
		require.False(t, w.TryAcquire(3), "one is still held")
		time.Sleep(2 * time.Millisecond)
		require.True(t, zksemaphore.NewWeighted(v.Session(), "/s", 3).TryAcquire(3), "the bound has passed")
	})
}
