package zkconn

import (
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

// The library sends from a small buffer until somebody may use it. The next request may be long already.
func TestAUserMaySendAMegabyte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		send := func() {
			go func() {
				for {
					xid, op, body := s.next()
					s.reply(xid, 0, make([]byte, jute.StatSize))
					if op == opSetData {
						require.Greater(t, len(body), 1<<20)
						return
					}
				}
			}()
			_, err := e.Conn().Set("/x", make([]byte, 1<<20), -1)
			require.NoError(t, err)
		}
		send()
		s.conn.Close()
		s = newScript(p, p.greet(1, time.Hour))
		send() // on the next connection, too
		s.close(c)
	})
}

// A connection that has ended, and whose goroutine of the library that sends has not ended yet, is the one case in which
// Conn waits: that goroutine could still take a request.
func TestConnWaitsForAGoroutineThatSendsFromTheSmallBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		w := e.current()
		w.writing <- struct{}{}
		time.Sleep(20 * time.Minute) // the library sends a ping, and is held up in it
		s.conn.Close()
		synctest.Wait()
		require.False(t, e.Linked())
		got := make(chan *zk.Conn, 1)
		go func() { got <- e.Conn() }()
		synctest.Wait()
		require.Empty(t, got)
		<-w.writing
		require.Same(t, e.conn, <-got)
		s = newScript(p, p.greet(1, time.Hour))
		s.close(c)
	})
}

// While no goroutine of the library sends, Conn waits for nothing, since nobody knows when a server can be reached.
func TestConnDoesNotWaitForAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		s.conn.Close()
		conn := <-p.dials // does not answer the handshake
		synctest.Wait()
		at := time.Now()
		require.Same(t, e.conn, e.Conn())
		require.Equal(t, at, time.Now())
		p.answerHello(conn, 1, time.Hour)
		s = newScript(p, conn)
		set := make(chan error)
		go func() {
			_, err := e.Conn().Set("/x", make([]byte, 1<<20), -1)
			set <- err
		}()
		xid, op, _ := s.next()
		require.EqualValues(t, opSetData, op)
		s.reply(xid, 0, make([]byte, jute.StatSize))
		require.NoError(t, <-set)
		s.close(c)
		require.Same(t, e.conn, e.Conn())
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
