package zkconn_test

import (
	"encoding/binary"
	"io"
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

// The epoch looks at the connection now and then, so one that is lost and there again in between is the same to it.
func TestAReadOnAnExternalConnectionOutlivesAnyNumberOfLostOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, _, e := external(t, srv)
		lose := srv.Intercept(zktest.On(zktest.Exists, "/a").Times(8).LoseReply())
		_, there, err := e.Exists(t.Context(), "/a")
		require.NoError(t, err)
		require.False(t, there)
		require.Equal(t, 8, lose.Fired())
	})
}

// unwritable fails so many writes of a read with an error of the network's own.
type unwritable struct {
	net.Conn
	fails *atomic.Int32
}

func (u unwritable) Write(b []byte) (int, error) {
	const exists = 3
	if len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == exists && u.fails.Add(-1) >= 0 {
		return 0, io.ErrClosedPipe
	}
	return u.Conn.Write(b)
}

func TestAReadOnAnExternalConnectionOutlivesAnyNumberOfWritesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var fails atomic.Int32
		fails.Store(8)
		conn, _, err := zk.Connect([]string{"127.0.0.1:2181", "127.0.0.1:2182", "127.0.0.1:2183"}, timeout, zk.WithLogInfo(false),
			zk.WithDialer(func(network, addr string, d time.Duration) (net.Conn, error) {
				c, err := srv.Dial(network, addr, d)
				return unwritable{c, &fails}, err
			}))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		c := zkconn.External(zkconn.Config{Timeout: timeout}, conn)
		t.Cleanup(c.Close)
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		_, there, err := e.Exists(t.Context(), "/a")
		require.NoError(t, err)
		require.False(t, there)
		require.EqualValues(t, -1, fails.Load())
	})
}

// As many answers that settle nothing as are overlooked come first.
func TestAReadOnAnExternalConnectionThatIsLostIsRepeatedWhateverCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, _, e := external(t, srv)
		const sessionMoved = -118
		n := 0
		srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Exists {
				n++
			}
			switch {
			case q.Op != zktest.Exists || n > 5:
				return zktest.Verdict{}
			case n == 5:
				return zktest.Verdict{Fate: zktest.LoseReply}
			}
			return zktest.Verdict{Fate: zktest.Fail, Code: sessionMoved}
		})
		_, there, err := e.Exists(t.Context(), "/a")
		require.NoError(t, err)
		require.False(t, there)
		require.Equal(t, 6, n)
	})
}

// What servers answer is told after a few times, here as on a connection of our own.
func TestAnAnswerThatSettlesNothingIsOverlookedAFewTimesOnAnExternalConnection(t *testing.T) {
	for _, code := range []zktest.Code{-5, -116, -117, -118} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			_, _, e := external(t, srv)
			fail := srv.Intercept(zktest.On(zktest.Exists, "/a").Error(code))
			began := time.Now()
			_, _, err := e.Exists(t.Context(), "/a")
			require.True(t, zkconn.Unknown(err), "%v", err)
			require.Equal(t, 5, fail.Fired())
			require.Equal(t, 75*time.Millisecond, time.Since(began), "pauses of 5, 10, 20 and 40 ms")
		})
	}
}
