package mutex_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// closer is a tracer that closes the session in the middle of the second Unlock: the lease has ended, and the ticket is not
// given up or kept yet.
type closer struct {
	releases atomic.Int32
	close    func()
}

func (c *closer) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}
func (c *closer) AcquireEnd(context.Context, zksync.AcquireEndData) {}
func (c *closer) Release(context.Context, zksync.ReleaseData) {
	if c.releases.Add(1) == 2 {
		c.close()
	}
}

func TestCloseInTheMiddleOfAnUnlockThatBeginsToLingerIsNoLoss(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		next := delayed(v, 1)[0]
		tracer, closed, took := new(closer), make(chan struct{}), time.Duration(0)
		s, err := v.Connect(t.Context(), zksync.WithTracer(tracer))
		require.NoError(t, err)
		tracer.close = func() {
			go func() {
				defer close(closed)
				start := time.Now()
				_ = s.Close()
				took = time.Since(start)
			}()
			time.Sleep(10 * time.Millisecond) // Close has called Finish
		}
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithLinger(time.Hour), zksync.WithLockDelay(span(v)))
		for range 2 { // the watch for contenders is set after the first Unlock, and not again
			m.Lock()
			m.Unlock()
		}
		<-closed
		start := time.Now()
		v.Unlocks(v.Lock(next), nil)
		v.AtOnce(start, "the grant")
		require.Less(t, took, time.Second, "Close")
	})
}
