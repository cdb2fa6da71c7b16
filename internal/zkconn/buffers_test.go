package zkconn

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

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
		const sendBuffer = 1536 << 10 // of the library
		require.Less(t, (used()-before)/n-sendBuffer, int64(48<<10))
		for i, c := range clients {
			require.NotZero(t, c.Current().Connection())
			conns[i].Close()
			closeAll(peers[i], c)
		}
	})
}
