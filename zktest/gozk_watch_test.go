package zktest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestWatchesOfTheGoClientFireOnce(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		there, _, created, err := c.ExistsW("/n")
		require.NoError(t, err)
		require.False(t, there)
		srv.Create("/n", nil, 0, 0)
		require.Equal(t, zk.Event{Type: zk.EventNodeCreated, State: zk.StateSyncConnected, Path: "/n"}, take(t, created))
		require.True(t, closed(created))

		_, _, data, err := c.GetW("/n")
		require.NoError(t, err)
		_, _, children, err := c.ChildrenW("/n")
		require.NoError(t, err)
		srv.Set("/n", []byte("1"))
		srv.Set("/n", []byte("2"))
		require.Equal(t, zk.EventNodeDataChanged, take(t, data).Type)
		require.True(t, closed(data))
		srv.Create("/n/child", nil, 0, 0)
		srv.Delete("/n/child")
		require.Equal(t, zk.EventNodeChildrenChanged, take(t, children).Type)
		require.True(t, closed(children))
		require.Equal(t, "Connecting, Connected, HasSession, NodeCreated /n, NodeDataChanged /n, NodeChildrenChanged /n", c.told())
		require.Zero(t, srv.Watches())
	})
}

func TestADeletedNodeTellsAllWatchesOfTheGoClient(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/n", 0)
		var all []<-chan zk.Event
		for range 2 { // each watch has a channel of its own, though the server counts them as one
			_, _, a, err := c.GetW("/n")
			require.NoError(t, err)
			_, _, b, err := c.ExistsW("/n")
			require.NoError(t, err)
			_, _, d, err := c.ChildrenW("/n")
			require.NoError(t, err)
			all = append(all, a, b, d)
		}
		require.Equal(t, 2, srv.Watches())
		srv.Delete("/n")
		for _, ch := range all {
			require.Equal(t, zk.EventNodeDeleted, take(t, ch).Type)
		}
	})
}

func TestAWatchThatCannotBeSetIsNotThere(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		_, _, _, err := c.GetW("/none")
		require.ErrorIs(t, err, zk.ErrNoNode)
		_, _, _, err = c.ChildrenW("/none")
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.Zero(t, srv.Watches())
	})
}

// What happens while the client has no connection is told when it is back; watches that nothing happened to stay.
func TestWatchesOfTheGoClientOutliveItsConnection(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		for _, path := range []string{"/changed", "/parent", "/deleted", "/same"} {
			mustCreate(t, c.Conn, path, 0)
		}
		get := func(path string) <-chan zk.Event {
			_, _, ch, err := c.GetW(path)
			require.NoError(t, err)
			return ch
		}
		changed, deleted, same := get("/changed"), get("/deleted"), get("/same")
		_, _, parent, err := c.ChildrenW("/parent")
		require.NoError(t, err)
		_, _, made, err := c.ExistsW("/made")
		require.NoError(t, err)
		_, _, later, err := c.ExistsW("/later")
		require.NoError(t, err)

		allow := srv.Refuse()
		srv.Disconnect(c.SessionID())
		synctest.Wait()
		srv.Set("/changed", []byte("x"))
		srv.Create("/parent/child", nil, 0, 0)
		srv.Delete("/deleted")
		srv.Create("/made", nil, 0, 0)
		require.Zero(t, srv.Watches())
		allow()
		awaitSession(c)
		require.Equal(t, zk.EventNodeDataChanged, take(t, changed).Type)
		require.Equal(t, zk.EventNodeChildrenChanged, take(t, parent).Type)
		require.Equal(t, zk.EventNodeDeleted, take(t, deleted).Type)
		require.Equal(t, zk.EventNodeCreated, take(t, made).Type)
		require.Equal(t, 2, srv.Watches())

		srv.Set("/same", []byte("x"))
		srv.Create("/later", nil, 0, 0)
		require.Equal(t, zk.EventNodeDataChanged, take(t, same).Type)
		require.Equal(t, zk.EventNodeCreated, take(t, later).Type)
	})
}

// A request of more than a megabyte would be refused, so the client sends several.
func TestManyWatchesAreSetAgainInParts(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		const n = 1500
		path := func(i int) string { return fmt.Sprintf("/%s-%d", strings.Repeat("x", 200), i) }
		watches := make([]<-chan zk.Event, n)
		for i := range watches {
			_, _, ch, err := c.ExistsW(path(i))
			require.NoError(t, err)
			watches[i] = ch
		}
		srv.Disconnect(c.SessionID())
		synctest.Wait()
		require.Equal(t, n, srv.Watches())
		parts := 0
		for _, r := range srv.Log() {
			if r.Op == zktest.SetWatches {
				parts++
			}
		}
		require.Greater(t, parts, 1)
		for i, ch := range watches {
			srv.Create(path(i), nil, 0, 0)
			require.Equal(t, zk.EventNodeCreated, take(t, ch).Type)
		}
	})
}
