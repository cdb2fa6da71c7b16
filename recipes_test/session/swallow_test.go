package session_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// swallower loses single writes and lets the connection live on, which TCP does not, but what stands in
// between may.
type swallower struct {
	net.Conn
	next *atomic.Bool
	op   uint32 // loses these only, as long as next is set; 0 for any, and one
}

func (s swallower) Write(b []byte) (int, error) {
	lost := false
	if s.op == 0 {
		lost = s.next.CompareAndSwap(true, false)
	} else if len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == s.op {
		lost = s.next.Load()
	}
	if lost {
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
			return swallower{c, &swallow, 0}, err
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

// A tapped connection's client library never gives such a request up, so others are made beside it.
func TestADeletionThatIsSwallowedOnATappedConnectionIsMadeAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const deletion = 2
		var swallow atomic.Bool
		conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, 9*time.Second, zk.WithLogInfo(false),
			zk.WithDialer(func(network, addr string, d time.Duration) (net.Conn, error) {
				c, err := v.Server.Dial(network, addr, d)
				return swallower{c, &swallow, deletion}, err
			}))
		require.NoError(t, err)
		defer conn.Close()
		s, err := zksync.Tap(context.Background(), conn)
		require.NoError(t, err)
		defer s.Close()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		v.Quiet()
		swallow.Store(true)
		require.NoError(t, l.Unlock())
		time.Sleep(1500 * time.Millisecond)
		swallow.Store(false)
		start := time.Now()
		require.NoError(t, v.Lock(v.Mutexes(1)[0]).Unlock())
		require.LessOrEqual(t, time.Since(start), 20*time.Second)
	})
}
