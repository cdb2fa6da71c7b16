package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

var open = zk.WorldACL(zk.PermAll)

// inBubble runs f in virtual time with a server and one client that has a 10 s session.
func inBubble(t *testing.T, f func(t *testing.T, srv *zktest.Server, conn *zk.Conn), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, opts...)
		conn := srv.Connect(t, 10*time.Second)
		// Once it is connected, the client library looks which watches it has, and sets them again: also one that f sets
		// before that look, and then the server would have two events for it.
		synctest.Wait()
		f(t, srv, conn)
	})
}

func mustCreate(t *testing.T, conn *zk.Conn, path string, flags int32) string {
	t.Helper()
	p, err := conn.Create(path, nil, flags, open)
	require.NoError(t, err)
	return p
}

// createAsync creates a node in the background.
func createAsync(conn *zk.Conn, path string, flags int32) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := conn.Create(path, nil, flags, open)
		done <- err
	}()
	return done
}

// pending reports whether nothing has come through the channel although everything has settled.
func pending[T any](ch <-chan T) bool {
	synctest.Wait()
	return len(ch) == 0
}
