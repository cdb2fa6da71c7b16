package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// oneHost has the client library dial again at once, as it does where there are several servers.
type oneHost struct{}

func (oneHost) Init([]string) error  { return nil }
func (oneHost) Len() int             { return 1 }
func (oneHost) Next() (string, bool) { return "zk:2181", false }
func (oneHost) Connected()           {}

// reconnecting is a connection of the test's own that comes back at once.
func reconnecting(t *testing.T, srv *zktest.Server) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{"zk:2181"}, 10*time.Second, zk.WithHostProvider(oneHost{}), zk.WithDialer(srv.Dial), zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(func() {
		go func() {
			for range events {
			}
		}()
		conn.Close()
		for range events {
		}
	})
	return conn
}

// The client library has the next session within a millisecond of an expiry; what a waiter asks there must not
// pass for the old one.
func TestAWaiterOnATappedConnectionDoesNotStormTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := reconnecting(t, srv)
		s, err := zksync.Tap(t.Context(), conn)
		require.NoError(t, err)
		holder, err := zksync.NewMutex(srv.Session(t), "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		waiting := make(chan error)
		go func() {
			_, err := zksync.NewMutex(s, "/locks/a").LockContext(context.Background())
			waiting <- err
		}()
		zktest.WaitChildren(t, srv, "/locks/a", 2)
		time.Sleep(time.Second)
		before := srv.Requests()
		srv.Expire(conn.SessionID())
		time.Sleep(time.Second)
		// Listings and watches of the new place, and the reaper's visits for the old one.
		require.Less(t, srv.Requests()-before, 40)
		zktest.CheckChildren(t, srv, "/locks/a", srv.Children("/locks/a")...)
		require.Len(t, srv.Children("/locks/a"), 2)
		require.NoError(t, holder.Unlock())
		require.NoError(t, <-waiting)
		require.NoError(t, s.Close())
	})
}

// A guarded transaction cannot be sent on a connection that its owner has closed, and for a moment nobody knows.
func TestAGuardOnATappedConnectionThatWasClosedDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := reconnecting(t, srv)
		s, err := zksync.Tap(t.Context(), conn)
		require.NoError(t, err)
		l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		conn.Close()
		_, err = l.Guard()
		require.Error(t, err)
		require.NoError(t, s.Close())
	})
}
