package session_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// shortLived is a connection that takes the handshake alone.
type shortLived struct {
	net.Conn
	writes atomic.Int32
}

func (c *shortLived) Write(b []byte) (int, error) {
	if c.writes.Add(1) > 1 {
		return 0, syscall.ECONNRESET
	}
	return c.Conn.Write(b)
}

// A connection that ends with its very first request is not the one that the session has.
func TestASessionIsSuspendedIfTheSyncInFrontOfAConnectionCannotBeWritten(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		stalled := make(chan struct{})
		var dials atomic.Int32
		s, err := zksync.Connect(t.Context(), "zk1", zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			switch dials.Add(1) {
			case 1:
				return v.Server.DialContext(ctx, network, address)
			case 2:
				c, err := v.Server.DialContext(ctx, network, address)
				return &shortLived{Conn: c}, err
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-stalled:
				return v.Server.DialContext(ctx, network, address)
			}
		}))
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		next := proving.Begin(t.Context(), zksync.NewMutex(s, proving.LockPath))
		v.Quiet()
		time.Sleep(10 * time.Millisecond) // so that no heartbeat's answer comes in the instant of the event
		v.Unlocks(l, nil)
		v.Awaits(next.Done, "Lock")
		require.NoError(t, next.Err)
		v.Server.Disconnect(s.ID())
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 3, dials.Load())
		require.Equal(t, zksync.Suspended, s.State())
		close(stalled)
		time.Sleep(2 * time.Second)
		require.Equal(t, zksync.Connected, s.State())
		v.Unlocks(next.Lease, nil)
	}, zktest.WithVersion("3.8"))
}
