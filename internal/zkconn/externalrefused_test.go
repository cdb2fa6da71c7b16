package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// unreachable cuts a session off from the servers, and returns when its client library knows, which is
// before the epoch does.
func unreachable(srv *zktest.Server, conn *zk.Conn) (allow func()) {
	allow = srv.Refuse()
	srv.Disconnect(conn.SessionID())
	for conn.State() == zk.StateHasSession {
		time.Sleep(time.Microsecond)
	}
	return allow
}

// The client library fails what it could not send once it has tried all servers in vain.
func TestARequestThatAnExternalConnectionCouldNotSendWaitsForAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, _, e := external(t, srv)
		allow := unreachable(srv, conn)
		_, err := e.StartDelete("/a").Wait(t.Context(), e)
		require.ErrorIs(t, err, zkconn.ErrNotSent)
		require.False(t, zkconn.Unknown(err))

		time.AfterFunc(timeout/4, allow)
		_, there, err := e.Exists(t.Context(), "/a")
		require.NoError(t, err)
		require.False(t, there)
	})
}

// What no server has seen proves nothing of the session.
func TestARequestThatAnExternalConnectionCouldNotSendDoesNotProveThatTheSessionLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, _, e := external(t, srv)
		time.Sleep(timeout)
		allow := unreachable(srv, conn)
		start := time.Now()
		for e.Valid() && time.Since(start) < 3*timeout {
			e.StartDelete("/a")
			time.Sleep(timeout / 32)
		}
		require.Less(t, time.Since(start), timeout)
		allow()
		time.Sleep(2 * timeout)
	})
}
