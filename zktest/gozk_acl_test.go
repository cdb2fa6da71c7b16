package zktest_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheGoClientReadsAndChangesACLs(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/n", 0)
		acl, stat, err := c.GetACL("/n")
		require.NoError(t, err)
		require.Equal(t, zk.WorldACL(zk.PermAll), acl)
		require.Zero(t, stat.Aversion)
		want := append(zk.WorldACL(zk.PermRead|zk.PermAdmin), zk.DigestACL(zk.PermAll, "ann", "secret")...)
		stat, err = c.SetACL("/n", want, 0)
		require.NoError(t, err)
		require.Equal(t, int32(1), stat.Aversion)
		_, err = c.SetACL("/n", want, 0)
		require.ErrorIs(t, err, zk.ErrBadVersion)
		acl, _, err = c.GetACL("/n")
		require.NoError(t, err)
		require.Equal(t, want, acl)
		_, err = c.Set("/n", nil, -1)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.NoError(t, c.AddAuth("digest", []byte("ann:secret")))
		_, err = c.Set("/n", nil, -1)
		require.NoError(t, err)
	})
}

func TestAnACLForTheCreatorIsForItsIdentities(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		_, err := c.Create("/n", nil, 0, zk.AuthACL(zk.PermAll))
		require.ErrorIs(t, err, zk.ErrInvalidACL, "it has none yet")
		require.NoError(t, c.AddAuth("digest", []byte("ann:secret")))
		require.NoError(t, c.AddAuth("digest", []byte("bob:secret")))
		_, err = c.Create("/n", nil, 0, zk.AuthACL(zk.PermAll))
		require.NoError(t, err)
		var ids []string
		for _, a := range node(t, srv, "/n").ACL {
			require.Equal(t, []any{"digest", int32(zk.PermAll)}, []any{a.Scheme, a.Perms})
			ids = append(ids, a.ID)
		}
		require.ElementsMatch(t, []string{
			zk.DigestACL(0, "ann", "secret")[0].ID, zk.DigestACL(0, "bob", "secret")[0].ID,
		}, ids)
	})
}

func TestTheGoClientShowsItsIdentityAgainOnEachConnection(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		require.NoError(t, c.AddAuth("digest", []byte("ann:secret")))
		_, err := c.Create("/n", []byte("x"), 0, zk.DigestACL(zk.PermAll, "ann", "secret"))
		require.NoError(t, err)
		_, _, watch, err := c.GetW("/n")
		require.NoError(t, err)
		srv.Disconnect(c.SessionID())
		awaitSession(c)
		data, _, err := c.Get("/n")
		require.NoError(t, err)
		require.Equal(t, "x", string(data))
		srv.Expire(c.SessionID())
		synctest.Wait()
		awaitSession(c)
		_, _, err = c.Get("/n")
		require.NoError(t, err, "also in a new session")
		require.Equal(t, zk.EventNotWatching, take(t, watch).Type)
	})
}

// The server answers and closes the connection: nobody should work on who was refused.
func TestAnUnknownSchemeCostsTheGoClientItsConnection(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		id := c.SessionID()
		c.told()
		require.ErrorIs(t, c.AddAuth("nonsense", []byte("x")), zk.ErrAuthFailed)
		require.Equal(t, "Disconnected, Connecting, Connected, HasSession", c.told())
		require.Equal(t, id, c.SessionID())
	})
}

func TestEachPermissionIsForItsOperations(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		for perm, allowed := range map[int32]string{
			zk.PermRead: "get list acl", zk.PermWrite: "set", zk.PermCreate: "create", zk.PermDelete: "delete", zk.PermAdmin: "acl admin",
		} {
			path := "/only-" + allowed
			_, err := c.Create(path, nil, 0, zk.WorldACL(perm|zk.PermCreate|zk.PermAdmin))
			require.NoError(t, err)
			mustCreate(t, c.Conn, path+"/child", 0)
			_, err = c.SetACL(path, zk.WorldACL(perm), -1)
			require.NoError(t, err)
			require.Equal(t, allowed, whatIsAllowed(t, c, path))
		}
	})
}

// whatIsAllowed tries everything on a node that has a child.
func whatIsAllowed(t *testing.T, c *gozk, path string) string {
	var allowed string
	for _, try := range []struct {
		name string
		do   func() error
	}{
		{"get", func() error { _, _, err := c.Get(path); return err }},
		{"list", func() error { _, _, err := c.Children(path); return err }},
		{"set", func() error { _, err := c.Set(path, nil, -1); return err }},
		{"create", func() error { _, err := c.Create(path+"/new", nil, 0, open); return err }},
		{"delete", func() error { return c.Delete(path+"/child", -1) }},
		{"acl", func() error { _, _, err := c.GetACL(path); return err }},
		{"admin", func() error { _, err := c.SetACL(path, zk.WorldACL(zk.PermAll), -1); return err }},
	} {
		switch err := try.do(); err {
		case nil:
			if allowed != "" {
				allowed += " "
			}
			allowed += try.name
		default:
			require.ErrorIs(t, err, zk.ErrNoAuth, try.name)
		}
	}
	_, _, err := c.Exists(path)
	require.NoError(t, err, "nobody needs a permission for that")
	return allowed
}
