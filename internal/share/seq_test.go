package share

import (
	"context"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Server is what these tests use of zktest.Server.
type Server interface {
	ServeConn(net.Conn)
	Expire(session int64) bool
	Ephemerals() map[int64][]string // of the sessions that live
	Close()
}

// Start starts a server. It is set by server_test.go: package zktest, which has the server, imports this one.
var Start func() Server

// piped is a session with a server of its own.
func piped(t *testing.T) (*session.Session, Server) {
	srv := Start()
	s, err := session.Connect(context.Background(), "zk", session.ForSession(func(s *session.Settings) {
		s.Dial = func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			go srv.ServeConn(b)
			return a, nil
		}
	}))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = s.Close()
		srv.Close()
	})
	return s, srv
}

// A node may be taken any number of times, lingering or by hand-overs without a bound, and each counts: an hour or two of a
// loop that locks and unlocks makes 2^32.
func TestTheTokenOfANodeDoesNotWrap(t *testing.T) {
	for _, lingers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			linger := session.ForLock("a linger", func(s *session.Settings) {
				if lingers {
					s.Linger = time.Hour
				}
			})
			s, _ := piped(t)
			c := NewCohort(session.NewAccess("zksync", s, "/locks/a", []session.Option{linger}), queue.KindLock)
			l, err := c.Acquire(context.Background(), false)
			require.NoError(t, err)
			next := make(chan *lease.Lease, 1)
			lock := func() {
				if l, err := c.Acquire(context.Background(), false); err == nil {
					next <- l
				}
			}
			c.mu.Lock()
			c.grant.passes, c.grant.company = mostPasses-2, alone // as after that many holds
			c.mu.Unlock()
			first := l.Token()
			for range 4 {
				last := l.Token()
				if !lingers {
					go lock()
					synctest.Wait()
				}
				require.NoError(t, l.Unlock())
				if lingers {
					go lock()
				}
				l = <-next
				require.Positive(t, l.Token().Compare(last), "%v", l.Token())
				require.Less(t, l.Token().Seq, uint32(math.MaxUint32))
			}
			require.Greater(t, l.Token().Zxid, first.Zxid)
			require.NoError(t, l.Unlock())
		})
	}
}
