package zkconn

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// large is more than the library's buffer has room for at first, and what servers just take.
var large = bytes.Repeat([]byte("x"), 1<<20-100)

// takesLarge has the user set the data of a node, and takes the request.
func takesLarge(t *testing.T, user *zk.Conn, s *script) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, err := user.Set("/node", large, -1)
		failed <- err
	}()
	xid, op, body := s.next()
	require.EqualValues(t, opSetData, op)
	require.True(t, bytes.Contains(body, large))
	s.reply(xid, 0, make([]byte, jute.StatSize))
	require.NoError(t, <-failed)
}

// answerExists answers the request with which the first Conn of an epoch makes room.
func answerExists(t *testing.T, s *script) {
	t.Helper()
	xid, op, _ := s.next()
	require.EqualValues(t, opExists, op)
	s.reply(xid, 0, make([]byte, jute.StatSize))
}

func TestAUserMaySendLargeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		go answerExists(t, s)
		user := e.Conn()
		takesLarge(t, user, s)
		require.Same(t, user, e.Conn())
		require.False(t, s.pending(), "it has room already")

		s.conn.Close()
		s = newScript(p, p.greet(1, time.Hour))
		takesLarge(t, user, s)
		s.close(c)
	})
}

func TestAUserWhoAsksWithoutAConnectionMaySendLargeRequestsOnTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		s.conn.Close()
		conn := <-p.dials
		synctest.Wait()
		user := e.Conn() // does not wait: the handshake is not answered
		p.answerHello(conn, 1, time.Hour)
		s = newScript(p, conn)
		takesLarge(t, user, s)
		s.close(c)
	})
}

// A large request may be sent at once when Conn has returned. The request that makes room may
// be under way when the connection is lost, or may wait for its answer for ever.
func TestAUserWhoseConnectionIsLostAtThatMomentMaySendLargeRequestsOnTheNext(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%v", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t)
				c, e, s := connectedTo(t, p)
				users := make(chan *zk.Conn)
				began := time.Now()
				go func() { users <- e.Conn() }()
				xid, _, _ := s.next()
				if lost {
					s.conn.Close()
					s = newScript(p, p.greet(1, time.Hour))
				}
				user := <-users
				if !lost { // else this test has waited for the next connection
					require.Zero(t, time.Since(began), "it waits for the write, not for the answer")
				}
				takesLarge(t, user, s)
				if !lost {
					s.reply(xid, 0, make([]byte, jute.StatSize))
				}
				s.close(c)
			})
		})
	}
}

// listingBody is the answer to a listing of n names.
func listingBody(n int) []byte {
	body := jute.AppendInt32(nil, int32(n))
	for i := range n {
		body = jute.AppendText(body, fmt.Sprintf("_c_9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d-lock-%010d", i))
	}
	return append(body, make([]byte, jute.StatSize)...)
}

// The library receives into small buffers until a frame is long, on every connection.
func TestAUserMayListAMillionNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		go answerExists(t, s)
		user := e.Conn()
		for _, n := range []int{3, 1_100_000} {
			b := listingBody(n)
			require.Equal(t, n > 3, len(b) > maxListing*9/10)
			s.conn.Close()
			s = newScript(p, p.greet(1, time.Hour))
			go func() {
				xid, op, _ := s.next()
				require.EqualValues(t, opGetChildren2, op)
				s.reply(xid, 0, b)
			}()
			names, _, err := user.Children("/lock")
			require.NoError(t, err)
			require.Len(t, names, n)
		}
		require.NoError(t, e.Cause())
		s.close(c)
	})
}

// Nor do connections that follow the first take more.
func TestASessionThatIsConnectedAgainTakesLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		used := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := used()
		var peers []*peer
		var conns []net.Conn
		var clients []*Client
		for range n {
			p := newPeer(t)
			c := p.open(time.Hour)
			p.greet(1, time.Hour).Close()
			conns = append(conns, p.greet(1, time.Hour))
			peers, clients = append(peers, p), append(clients, c)
		}
		synctest.Wait()
		require.Less(t, (used()-before)/n, int64(48<<10))
		for i, c := range clients {
			require.NotZero(t, c.Current().Connection())
			conns[i].Close()
			closeAll(peers[i], c)
		}
	})
}
