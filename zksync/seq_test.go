package zksync

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkserver"
)

// A lingering node may be taken any number of times, and each counts: an hour or two of a loop that locks and
// unlocks makes 2^32.
func TestTheTokenOfALingeringNodeDoesNotWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		s, err := Connect(context.Background(), "zk", WithDialer(func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			go srv.ServeConn(b)
			return a, nil
		}))
		require.NoError(t, err)
		defer s.Close()
		m := NewMutex(s, "/locks/a", WithLinger(time.Hour))
		l, err := m.LockContext(context.Background())
		require.NoError(t, err)
		m.c.mu.Lock()
		m.c.passes = mostPasses // as after that many holds
		m.c.mu.Unlock()
		require.NoError(t, l.Unlock())
		next, err := m.LockContext(context.Background())
		require.NoError(t, err)
		require.Positive(t, next.Token().Compare(Token{Zxid: l.Token().Zxid, Seq: mostPasses}), "%v", next.Token())
		require.NoError(t, next.Unlock())
	})
}
