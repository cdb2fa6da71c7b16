package record_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// The client library sends what waits in its next session, which lives on.
func TestAMarkThatTheNextSessionOfAnExternalConnectionMakesIsRemoved(t *testing.T) {
	for _, delay := range []time.Duration{0, 10 * time.Millisecond, 30 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			const address = "127.0.0.1:2181"
			conn, _, err := zk.Connect([]string{address, address, address, address}, 9*time.Second, zk.WithLogInfo(false),
				zk.WithDialer(func(_, _ string, limit time.Duration) (net.Conn, error) {
					time.Sleep(20 * time.Millisecond)
					return srv.Dial("tcp", address, limit)
				}))
			require.NoError(t, err)
			defer conn.Close()
			c := zkconn.External(zkconn.Config{Timeout: 9 * time.Second}, conn)
			defer c.Close()
			e, err := c.Epoch(t.Context())
			require.NoError(t, err)
			srv.Create("/g", nil, 0, 0)
			srv.Expire(conn.SessionID())
			time.Sleep(delay)
			_, err = record.PutMark(t.Context(), e, "/g", acl)
			require.ErrorIs(t, err, zkconn.ErrOver)
			time.Sleep(time.Minute)
			require.Empty(t, srv.Children("/g"))
		})
	}
}
