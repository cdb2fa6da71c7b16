package mutex_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// jammed is a connection that takes no byte any more once full is set, as one whose buffers are full.
type jammed struct {
	net.Conn
	full   *atomic.Bool
	nobody net.Conn // of which nobody reads
}

func (c *jammed) Write(b []byte) (int, error) {
	if c.full.Load() {
		return c.nobody.Write(b)
	}
	return c.Conn.Write(b)
}

func (c *jammed) SetWriteDeadline(t time.Time) error {
	_ = c.nobody.SetWriteDeadline(t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *jammed) Close() error {
	_ = c.nobody.Close()
	return c.Conn.Close()
}

// full opens a session, and returns what jams its connections.
func full(v *proving.Env) (*zksync.Session, *atomic.Bool) {
	full := new(atomic.Bool)
	return v.Session(zksync.WithDialer(func(_ context.Context, network, addr string) (net.Conn, error) {
		c, err := v.Server.Dial(network, addr, time.Second)
		if err != nil {
			return nil, err
		}
		nobody, _ := net.Pipe()
		return &jammed{c, full, nobody}, nil
	})), full
}

func TestNobodyWaitsForAWriteOfAnUnlockThatHandsOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, jam := full(v)
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithHandover(0))
		l := listens(v, v.Lock(m))
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		jam.Store(true)
		done := make(chan error, 1)
		go func() { done <- l.Unlock() }()
		v.Quiet()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_, err := m.TryLockContext(ctx)
		require.Error(t, err)
		v.Took(start, 0, "TryLockContext")
		require.NoError(t, <-done)
		jam.Store(false)
		v.Unlocks(v.Granted(next), nil)
	})
}

// Its Unlock does not wait for the request with which it began to listen, longer than for its own.
func TestNobodyWaitsForAWriteOfAHoldThatBeginsToListen(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, jam := full(v)
		m := zksync.NewMutex(s, proving.LockPath)
		l := v.Lock(m)
		jam.Store(true)
		l.Revoked()
		v.Quiet()
		start := time.Now()
		require.NoError(t, l.Unlock())
		v.Took(start, 100*time.Millisecond, "the connection that takes no bytes is given up, and with it the wait")
		jam.Store(false)
		v.Unlocks(v.Lock(m), nil)
	})
}
