package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAnAttemptGoesByItsOwnResize(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := zksemaphore.NewWeighted(v.Session(), proving.SemPath, 2)
		for range 30 {
			require.NoError(t, w.Resize(ctx, 3))
			require.True(t, w.TryAcquire(3))
			w.Release(3)
			require.NoError(t, w.Resize(ctx, 2))
			require.True(t, w.TryAcquire(2)) // reads the configuration
			w.Release(2)
		}
	})
}

// A Resize has been applied, and before its answer is here another one is confirmed. Two that insisted would never end.
func TestAResizeThatIsDoneTakesNoLaterOneBack(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		far := v.Session()
		w, slow := sems(v, 1, 5)[0], zksemaphore.NewWeighted(far, proving.SemPath, 5)
		require.NoError(t, w.Resize(ctx, 4))
		require.True(t, slow.TryAcquire(1)) // reads the configuration
		slow.Release(1)
		v.Server.Delay(far.ID(), 100*time.Millisecond, 100*time.Millisecond)
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- slow.Resize(ctx, 2) }()
		v.Eventually(func() bool { return strings.Contains(v.Data(proving.SemPath), `"capacity":2`) }, "it is not applied")
		require.NoError(t, w.Resize(ctx, 3))
		require.NoError(t, <-done)
		v.Took(start, 400*time.Millisecond, "Resize, a reading and a write,")
		v.Later()
		require.Contains(t, v.Data(proving.SemPath), `"capacity":3`)
	})
}

// What a server reads that has not heard of the latest Resize is no reason to leave one out.
func TestAResizeIsNotTakenForDoneBecauseItsServerLags(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := t.Context()
		w, late := zksemaphore.NewWeighted(e.SessionAt(t, 1), proving.SemPath, 5), zksemaphore.NewWeighted(e.SessionAt(t, 0), proving.SemPath, 5)
		require.True(t, late.TryAcquire(1)) // reads the configuration
		late.Release(1)
		catchUp := e.Lag(0)
		require.NoError(t, w.Resize(ctx, 4))
		done := make(chan error, 1)
		go func() { done <- late.Resize(ctx, 5) }()
		synctest.Wait()
		catchUp()
		require.NoError(t, <-done)
		free, err := w.Available(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 5, free)
	})
}
