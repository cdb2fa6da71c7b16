package zktest_test

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheGoClientReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		path, err := c.Create("/n", []byte("a"), 0, open)
		require.NoError(t, err)
		require.Equal(t, "/n", path)
		data, stat, err := c.Get("/n")
		require.NoError(t, err)
		require.Equal(t, "a", string(data))
		require.Zero(t, stat.Version)
		require.Equal(t, time.Now().UnixMilli(), stat.Ctime, "the clock is the bubble's")
		stat, err = c.Set("/n", []byte("bc"), 0)
		require.NoError(t, err)
		require.Equal(t, []int32{1, 2}, []int32{stat.Version, stat.DataLength})
		require.Greater(t, stat.Mzxid, stat.Czxid)
		there, again, err := c.Exists("/n")
		require.NoError(t, err)
		require.True(t, there)
		require.Equal(t, stat, again)
		require.NoError(t, c.Delete("/n", 1))
		there, _, err = c.Exists("/n")
		require.NoError(t, err, "that it does not exist is an answer")
		require.False(t, there)
	})
}

func TestTheGoClientListsChildren(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/p", 0)
		names, stat, err := c.Children("/p")
		require.NoError(t, err)
		require.Empty(t, names)
		require.Zero(t, stat.NumChildren)
		mustCreate(t, c.Conn, "/p/a", 0)
		mustCreate(t, c.Conn, "/p/b", 0)
		names, stat, err = c.Children("/p")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"a", "b"}, names)
		require.Equal(t, []int32{2, 2}, []int32{stat.NumChildren, stat.Cversion})
		_, _, err = c.Children("/none")
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

func TestTheGoClientCreatesNodesOfEveryKind(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/p", zk.FlagPersistent)
		require.Equal(t, "/p/s0000000000", mustCreate(t, c.Conn, "/p/s", zk.FlagSequence))
		require.Equal(t, "/p/0000000001", mustCreate(t, c.Conn, "/p/", zk.FlagSequence), "the number is all of the name")
		require.Equal(t, "/p/es0000000002", mustCreate(t, c.Conn, "/p/es", zk.FlagEphemeralSequential))
		mustCreate(t, c.Conn, "/p/e", zk.FlagEphemeral)
		for path, owner := range map[string]int64{"/p": 0, "/p/s0000000000": 0, "/p/es0000000002": c.SessionID(), "/p/e": c.SessionID()} {
			_, stat, err := c.Exists(path)
			require.NoError(t, err)
			require.Equal(t, owner, stat.EphemeralOwner, path)
		}
		path, err := c.CreateContainer("/c", nil, zk.FlagContainer, open)
		require.NoError(t, err)
		require.Equal(t, "/c", path)
		mustCreate(t, c.Conn, "/c/child", 0)
		require.NoError(t, c.Delete("/c/child", -1))
		<-time.After(time.Minute)
		synctest.Wait()
		zktest.CheckNoNode(t, srv, "/c")
	})
}

func TestTheGoClientRefusesFlagsThatDoNotFit(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		before := srv.Requests()
		_, err := c.Create("/n", nil, zk.FlagTTL, open)
		require.ErrorIs(t, err, zk.ErrInvalidFlags)
		_, err = c.CreateContainer("/n", nil, zk.FlagEphemeral, open)
		require.ErrorIs(t, err, zk.ErrInvalidFlags)
		_, err = c.CreateTTL("/n", nil, zk.FlagPersistent, open, time.Second)
		require.ErrorIs(t, err, zk.ErrInvalidFlags)
		_, err = c.Create("/n", nil, 77, open)
		require.Error(t, err)
		for _, path := range []string{"", "n", "/n/", "//n", "/n/../m", "/a\x00b"} {
			_, _, err = c.Get(path)
			require.ErrorIs(t, err, zk.ErrInvalidPath, "%q", path)
		}
		require.Equal(t, before, srv.Requests(), "the server was not asked")
	})
}

func TestTheGoClientNamesTheErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/p", 0)
		mustCreate(t, c.Conn, "/p/child", 0)
		mustCreate(t, c.Conn, "/e", zk.FlagEphemeral)
		create := func(path string, acl []zk.ACL) error {
			_, err := c.Create(path, nil, 0, acl)
			return err
		}
		_, bad := c.Set("/p", nil, 7)
		_, missing := c.Set("/none", nil, -1)
		for _, x := range []struct{ got, want error }{
			{create("/p", open), zk.ErrNodeExists},
			{create("/none/child", open), zk.ErrNoNode},
			{create("/e/child", open), zk.ErrNoChildrenForEphemerals},
			{create("/n", nil), zk.ErrInvalidACL},
			{create("/n", []zk.ACL{{Perms: 31, Scheme: "digest", ID: "no-colon"}}), zk.ErrInvalidACL},
			{bad, zk.ErrBadVersion},
			{missing, zk.ErrNoNode},
			{c.Delete("/p", -1), zk.ErrNotEmpty},
			{c.Delete("/e", 3), zk.ErrBadVersion},
			{c.Delete("/none", -1), zk.ErrNoNode},
		} {
			require.ErrorIs(t, x.got, x.want)
		}
		require.Equal(t, zk.StateHasSession, c.State(), "none of them costs the connection")
	})
}

func TestTheGoClientSyncs(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/n", 0)
		path, err := c.Sync("/n")
		require.NoError(t, err)
		require.Equal(t, "/n", path)
	})
}

// What the client saw last is where it goes on: requests are answered in order, also of many goroutines.
func TestRequestsOfManyGoroutinesAreAllAnswered(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/p", 0)
		made := make(chan string, 200)
		for range cap(made) {
			go func() {
				path, err := c.Create("/p/n-", nil, zk.FlagSequence, open)
				if err != nil {
					path = err.Error()
				}
				made <- path
			}()
		}
		unique := map[string]bool{}
		for range cap(made) {
			path := <-made
			require.Regexp(t, regexp.MustCompile(`^/p/n-0000000\d\d\d$`), path)
			unique[path] = true
		}
		require.Len(t, unique, 200)
		zktest.WaitChildren(t, srv, "/p", 200)
	})
}
