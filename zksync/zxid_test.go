package zksync_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// greets remembers the first frame of a connection.
type greets struct {
	net.Conn
	once sync.Once
	tell func([]byte)
}

func (g *greets) Write(b []byte) (int, error) {
	g.once.Do(func() { g.tell(append([]byte(nil), b...)) })
	return g.Conn.Write(b)
}

// Servers refuse a client that has seen a later transaction than they have: so that it never goes back in time. The
// client has to say what it has seen.
func TestAReconnectTellsTheNewestTransactionSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var seen []int64
		s, err := zksync.Connect(context.Background(), "zk", zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := srv.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &greets{Conn: c, tell: func(b []byte) { seen = append(seen, int64(binary.BigEndian.Uint64(b[8:]))) }}, nil
		}))
		require.NoError(t, err)
		l, err := zksync.NewMutex(s, "/a").LockContext(context.Background())
		require.NoError(t, err)
		srv.Disconnect(s.ID())
		time.Sleep(time.Second)
		require.NoError(t, l.Unlock())
		require.NoError(t, s.Close())
		require.Len(t, seen, 2)
		require.GreaterOrEqual(t, seen[1], l.Token().Zxid, "last zxid seen, in the second handshake")
	})
}
