package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Of those who wait nobody lists all others again, neither after a reconnect nor after a Resize.
func TestNobodyWhoWaitsForPermitsListsAgainAfterAReconnectOrAResize(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const n = 20
		one := func(s *zksync.Session) *zksemaphore.Weighted { return zksemaphore.NewWeighted(s, proving.SemPath, 1) }
		first := v.Session()
		held := v.Get(func(ctx context.Context) (*zksync.Lease, error) { return one(first).AcquireLease(ctx, 1) })
		sessions, waits := make([]*zksync.Session, n), make([]*proving.Attempt, n)
		for i := range n {
			sessions[i] = v.Session()
			w := one(sessions[i])
			waits[i] = proving.Call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, 1) })
			v.Settled(proving.SemPath+"/queue", i+2)
			v.Quiet()
		}
		listings := func(f func()) int {
			before := v.Server.RequestsBy(zktest.GetChildren)
			f()
			time.Sleep(time.Second)
			return v.Server.RequestsBy(zktest.GetChildren) - before
		}
		require.Zero(t, listings(func() {
			for _, s := range sessions {
				v.Server.Disconnect(s.ID())
			}
		}), "a reconnect")
		require.LessOrEqual(t, listings(func() { require.NoError(t, one(first).Resize(context.Background(), 4)) }), 3, "a Resize: those whom it lets in")
		for _, w := range waits[:3] {
			require.NoError(t, v.Granted(w).Unlock())
		}
		require.NoError(t, held.Unlock())
		for _, w := range waits[3:] {
			require.NoError(t, v.Granted(w).Unlock())
		}
	})
}
