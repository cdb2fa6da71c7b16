package zksync_test

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

type frames struct {
	net.Conn
	tell func([]byte)
}

func (f *frames) Write(b []byte) (int, error) { f.tell(b); return f.Conn.Write(b) }

// A server of an ensemble finds the request that a commit belongs to by session and xid. So a number that comes again on the
// session's next connection gets the answer to the old request, if that was still under way.
func TestNoXidComesTwiceInASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		seen := make(map[int32]int)
		s, err := zksync.Connect(context.Background(), "zk", zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := srv.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			first := true
			return &frames{Conn: c, tell: func(b []byte) {
				if xid := int32(binary.BigEndian.Uint32(b[4:])); !first && xid > 0 {
					seen[xid]++
				}
				first = false
			}}, nil
		}))
		require.NoError(t, err)
		m := zksync.NewMutex(s, "/a")
		for range 2 {
			l, err := m.LockContext(context.Background())
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
			srv.Disconnect(s.ID())
			time.Sleep(time.Second)
		}
		require.NoError(t, s.Close())
		for xid, n := range seen {
			require.Equal(t, 1, n, "xid %d", xid)
		}
	})
}
