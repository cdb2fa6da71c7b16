package zkconn_test

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// lossy loses the deletions that are written to it, and nothing else.
type lossy struct {
	net.Conn
	lost *atomic.Int32
}

func (l lossy) Write(b []byte) (int, error) {
	const deletion = 2
	if len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == deletion {
		l.lost.Add(1)
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// Each attempt that is lost keeps a goroutine until the connection ends.
func TestTheReaperOfAnExternalConnectionCollectsNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var lost atomic.Int32
		conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, timeout, zk.WithLogInfo(false),
			zk.WithDialer(func(network, addr string, d time.Duration) (net.Conn, error) {
				c, err := srv.Dial(network, addr, d)
				return lossy{c, &lost}, err
			}))
		require.NoError(t, err)
		c := zkconn.External(zkconn.Config{Timeout: timeout}, conn)
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		dir(t, e, "_c_1-lock-0")
		done := e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"})
		time.Sleep(5 * timeout)
		require.Greater(t, lost.Load(), int32(3), "it is tried again")
		time.Sleep(100*timeout + time.Millisecond) // not when a heartbeat is sent: see usable
		require.EqualValues(t, 16, lost.Load())
		unfinished(t, done)
		conn.Close()
		reaped(t, done, 3*time.Second)
		c.Close()
	})
}
