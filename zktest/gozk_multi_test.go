package zktest_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestAMultiOfTheGoClientIsDoneAsAWhole(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		results, err := c.Multi(
			&zk.CreateRequest{Path: "/p", Data: []byte("1"), Acl: open},
			&zk.CreateRequest{Path: "/p/s-", Acl: open, Flags: zk.FlagEphemeralSequential},
			&zk.SetDataRequest{Path: "/p", Data: []byte("2"), Version: 0},
			&zk.CheckVersionRequest{Path: "/p", Version: 1},
			&zk.CreateRequest{Path: "/q", Acl: open},
			&zk.DeleteRequest{Path: "/q", Version: -1},
		)
		require.NoError(t, err)
		require.Len(t, results, 6)
		for _, r := range results {
			require.NoError(t, r.Error)
		}
		require.Equal(t, "/p", results[0].String)
		require.Equal(t, "/p/s-0000000000", results[1].String)
		require.Equal(t, []int32{1, 1}, []int32{results[2].Stat.Version, results[2].Stat.NumChildren})
		zktest.CheckNode(t, srv, "/p", []byte("2"))
		zktest.CheckChildren(t, srv, "/p", "s-0000000000")
		zktest.CheckNoNode(t, srv, "/q")
		require.Equal(t, node(t, srv, "/p").Stat.Mzxid, node(t, srv, "/p/s-0000000000").Stat.Czxid, "one transaction")
	})
}

func TestAMultiThatFailsDoesNothing(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/there", 0)
		results, err := c.Multi(
			&zk.CreateRequest{Path: "/n", Acl: open},
			&zk.CreateRequest{Path: "/there", Acl: open},
			&zk.DeleteRequest{Path: "/there", Version: -1},
		)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		require.Len(t, results, 3)
		require.NoError(t, results[0].Error, "the client calls parts before the failed one successful")
		require.ErrorIs(t, results[1].Error, zk.ErrNodeExists)
		require.EqualError(t, results[2].Error, "unknown error: -2")
		zktest.CheckNoNode(t, srv, "/n")
		zktest.CheckNode(t, srv, "/there", nil)

		_, err = c.Multi(&zk.CheckVersionRequest{Path: "/there", Version: 3}, &zk.DeleteRequest{Path: "/there", Version: -1})
		require.ErrorIs(t, err, zk.ErrBadVersion)
		zktest.CheckNode(t, srv, "/there", nil)
	})
}

func TestAMultiTakesFourKindsOfRequests(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		_, err := c.Multi(&zk.CreateRequest{Path: "/n", Acl: open}, "nonsense")
		require.EqualError(t, err, "unknown operation type string")
		zktest.CheckNoNode(t, srv, "/n")
		results, err := c.Multi()
		require.NoError(t, err)
		require.Empty(t, results)
	})
}
