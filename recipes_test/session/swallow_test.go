package session_test

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

// swallower loses single writes and lets the connection live on, which TCP does not, but what stands in
// between may.
type swallower struct {
	net.Conn
	next *atomic.Bool
}

func (s swallower) Write(b []byte) (int, error) {
	if s.next.CompareAndSwap(true, false) {
		return len(b), nil
	}
	return s.Conn.Write(b)
}

// The request is lost, heartbeats are answered: without more traffic nothing would ever tell. The node of an Unlock
// would stay as long as the session.
func TestARequestThatIsSwallowedIsMissedInTime(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var swallow atomic.Bool
		s := v.Session(zksync.WithTimeout(9*time.Second), zksync.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := v.Server.DialContext(ctx, network, addr)
			return swallower{c, &swallow}, err
		}))
		m, other := zksync.NewMutex(s, proving.LockPath), v.Mutexes(1)[0]
		l := v.Lock(m)
		swallow.Store(true)
		require.NoError(t, l.Unlock())
		start := time.Now()
		after := v.Lock(other)
		require.LessOrEqual(t, time.Since(start), 9*time.Second)
		require.NoError(t, after.Unlock())
		swallow.Store(true)
		start = time.Now()
		m.Lock() // its create is lost
		require.LessOrEqual(t, time.Since(start), 9*time.Second)
		m.Unlock()
		v.Queued(proving.LockPath, 0)
	})
}
