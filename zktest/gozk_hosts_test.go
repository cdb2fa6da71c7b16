package zktest_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheGoClientAsksItsHostListForTheNextServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		hosts := &hostList{}
		var dialled []string
		dial := func(network, address string, timeout time.Duration) (conn net.Conn, err error) {
			require.Equal(t, []any{"tcp", time.Second}, []any{network, timeout})
			dialled = append(dialled, address)
			if address == "b:2181" {
				return nil, errors.New("b is down")
			}
			return srv.Dial(network, address, timeout)
		}
		c := newGozk(t, dial, hosts, 30*time.Second)
		for range 3 {
			awaitSession(c)
			srv.Disconnect(c.SessionID())
		}
		awaitSession(c)
		require.Equal(t, []string{"a:2181", "b:2181", "c:2181", "a:2181", "b:2181", "c:2181"}, dialled)
		require.Equal(t, "c:2181", c.Server())
		require.Equal(t, 4, hosts.success, "it was told of each session")
		require.Len(t, srv.Sessions(), 1)
	})
}

// A node with a time to live needs a server that is configured for it, as a real one.
func TestTheGoClientCreatesNodesWithATimeToLive(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			opts := []zktest.Option{zktest.WithContainerInterval(10 * time.Second)}
			if allowed {
				opts = append(opts, zktest.WithExtendedTypes())
			}
			srv := zktest.Run(t, opts...)
			c := newGozk(t, srv.Dial, &hostList{}, 30*time.Second)
			path, err := c.CreateTTL("/t-", []byte("x"), zk.FlagPersistentSequentialWithTTL, open, time.Minute)
			if !allowed {
				require.EqualError(t, err, "unknown error: -6")
				require.Equal(t, zk.StateHasSession, c.State())
				return
			}
			require.NoError(t, err)
			require.Equal(t, "/t-0000000000", path)
			zktest.CheckNode(t, srv, path, []byte("x"))
			<-time.After(time.Minute)
			synctest.Wait()
			zktest.CheckNode(t, srv, path, []byte("x"))
			<-time.After(11 * time.Second)
			synctest.Wait()
			zktest.CheckNoNode(t, srv, path)
		})
	}
}

func TestAServerThatIsAloneRefusesToBeReconfigured(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		_, err := c.Reconfig([]string{"server.1=a:1:2;3"}, -1)
		require.ErrorIs(t, err, zk.ErrReconfigDisabled)
		_, err = c.IncrementalReconfig([]string{"server.2=a:1:2;3"}, []string{"1"}, -1)
		require.ErrorIs(t, err, zk.ErrReconfigDisabled)
		require.Equal(t, zk.StateHasSession, c.State())
	})
}

func TestTheGoClientParsesWordsOfTheServer(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	conn := dialTCP(t, srv)
	mustCreate(t, conn, "/n", 0)
	require.Equal(t, []bool{true}, zk.FLWRuok([]string{srv.Addr()}, 10*time.Second))
	clients, ok := zk.FLWCons([]string{srv.Addr()}, 10*time.Second)
	require.False(t, ok, "the asking connection has no session, which the client does not expect of a real server either")
	require.Len(t, clients, 1)
	require.NoError(t, clients[0].Error)
	require.Len(t, clients[0].Clients, 1)
	one := clients[0].Clients[0]
	require.Equal(t, []any{conn.SessionID(), int32(10_000), int64(2)}, []any{one.SessionID, one.Timeout, one.Received})

	// The client expects the date of the build as servers before 3.6 wrote it: a real 3.8 does not please it either.
	stats, ok := zk.FLWSrvr([]string{srv.Addr()}, 10*time.Second)
	require.False(t, ok)
	require.ErrorContains(t, stats[0].Error, "no regex matches")
}
