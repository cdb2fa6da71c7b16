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
	last int32 // it loses no more than these; 0 for all
}

func (l lossy) Write(b []byte) (int, error) {
	const deletion = 2
	if len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == deletion && (l.last == 0 || l.lost.Load() < l.last) {
		l.lost.Add(1)
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// overLossy adopts a connection that loses as many deletions.
func overLossy(t *testing.T, srv *zktest.Server, lost *atomic.Int32, last int32) (*zk.Conn, *zkconn.Client, *zkconn.Epoch) {
	t.Helper()
	conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, timeout, zk.WithLogInfo(false),
		zk.WithDialer(func(network, addr string, d time.Duration) (net.Conn, error) {
			c, err := srv.Dial(network, addr, d)
			return lossy{c, lost, last}, err
		}))
	require.NoError(t, err)
	c := zkconn.External(zkconn.Config{Timeout: timeout}, conn)
	e, err := c.Epoch(t.Context())
	require.NoError(t, err)
	return conn, c, e
}

// Those that the end of a connection has failed are under way no more.
func TestTheReaperOfAnExternalConnectionTriesAgainHoweverManyWereLostBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var lost atomic.Int32
		conn, c, e := overLossy(t, srv, &lost, 17)
		dir(t, e, "_c_1-lock-0")
		done := e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"})
		time.Sleep(50*timeout + time.Millisecond)
		require.EqualValues(t, 16, lost.Load())
		srv.Disconnect(conn.SessionID())
		reaped(t, done, 5*timeout)
		zktest.CheckChildren(t, srv, "/d")
		c.Close()
		conn.Close()
	})
}

// Each attempt that is lost keeps a goroutine until the connection ends.
func TestTheReaperOfAnExternalConnectionCollectsNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int32
		conn, c, e := overLossy(t, zktest.Run(t), &lost, 0)
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
