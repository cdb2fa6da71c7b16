package zktest_test

import (
	"bytes"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// The client drops the connection of a server that sends more than it wants to take.
func TestTheGoClientTakesAnswersUpToItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 2000
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		const header, length, stat = 16, 4, 68
		srv.Create("/fits", make([]byte, limit-header-length-stat), 0, 0)
		srv.Create("/large", make([]byte, limit-header-length-stat+1), 0, 0)
		id := c.SessionID()
		data, _, err := c.Get("/fits")
		require.NoError(t, err)
		require.Len(t, data, limit-header-length-stat)
		c.told()
		_, _, err = c.Get("/large")
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.Equal(t, "Disconnected, Connecting, Connected, HasSession", c.told())
		require.Equal(t, id, c.SessionID())
		_, _, err = c.Exists("/large")
		require.NoError(t, err)
	}, zk.WithMaxBufferSize(limit))
}

func TestTheGoClientTakesLargeAnswersUnlessLimited(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		large := bytes.Repeat([]byte("x"), 1<<20-1000)
		_, err := c.Create("/n", large, 0, open)
		require.NoError(t, err)
		data, _, err := c.Get("/n")
		require.NoError(t, err)
		require.Equal(t, large, data)
	})
}

// A request that the server does not take costs the connection; one that the client's own buffer does not
// take is an error that costs nothing.
func TestRequestsOfTheGoClientHaveTwoLimits(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		c.told()
		_, err := c.Create("/n", make([]byte, 3<<20), 0, open)
		require.ErrorIs(t, err, zk.ErrShortBuffer)
		require.Empty(t, c.told())
		_, err = c.Create("/n", make([]byte, 1<<20+100), 0, open)
		require.Error(t, err)
		require.Equal(t, "Disconnected, Connecting, Connected, HasSession", c.told())
		zktest.CheckNoNode(t, srv, "/n")
	}, zk.WithMaxConnBufferSize(2<<20))
}
