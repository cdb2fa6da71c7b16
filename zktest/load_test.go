package zktest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestAFixtureIsLoadedWithItsParents(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Create("/app", []byte("old"), 0, 0)
		srv.Load(map[string]string{"/app": "new", "/app/a/b": "1", "/app/c": "\x00\x01"})
		want := map[string]string{"/app": "new", "/app/a": "", "/app/a/b": "1", "/app/c": "\x00\x01"}
		require.Equal(t, want, srv.Contents("/app"))
		require.Equal(t, want, srv.Contents("/"), "without the server's own nodes")
		require.Equal(t, map[string]string{"/app/a": "", "/app/a/b": "1"}, srv.Contents("/app/a"))
		require.Empty(t, srv.Contents("/nope"))
		require.Equal(t, int32(1), node(t, srv, "/app").Stat.Version, "it was there and got other data")

		other := zktest.Run(t)
		other.Load(srv.Contents("/"))
		zktest.CheckTree(t, other, "/", want)
	})
}

func TestDeleteAllRemovesASubtreeOrEverything(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Load(map[string]string{"/a/b/c": "", "/a/d": "", "/e": ""})
		mustCreate(t, conn, "/a/b/c/e", zk.FlagEphemeral)
		_, _, events, err := conn.ChildrenW("/a")
		require.NoError(t, err)
		srv.DeleteAll("/a/b")
		require.Equal(t, zk.EventNodeChildrenChanged, (<-events).Type)
		zktest.CheckTree(t, srv, "/", map[string]string{"/a": "", "/a/d": "", "/e": ""})
		srv.DeleteAll("/a/b")
		srv.DeleteAll("/")
		zktest.CheckChildren(t, srv, "/", "zookeeper")
		zktest.CheckSessions(t, srv, conn.SessionID())
	})
}

func TestDeleteAllRemovesAlsoWhatClientsChangeMeanwhile(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	conn := srv.Connect(t, 10*time.Second)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				conn.Create(fmt.Sprintf("/a/b/new%d", i), nil, 0, zk.WorldACL(zk.PermAll)) // refused while there is no parent
				conn.Delete(fmt.Sprintf("/a/b/new%d", i-1), -1)
			}
		}
	}()
	for range 20 {
		for i := range 64 {
			srv.Load(map[string]string{fmt.Sprintf("/a/b/c%d", i): ""})
		}
		srv.DeleteAll("/a")
		zktest.CheckChildren(t, srv, "/", "zookeeper")
	}
	close(stop)
	<-stopped
}

func TestTheACLOfANodeCanBeSetWithoutAClient(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Create("/n", nil, 0, 0)
		srv.SetACL("/n", zk.WorldACL(zk.PermRead)...)
		_, err := conn.Set("/n", nil, -1)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Equal(t, zk.WorldACL(zk.PermRead), node(t, srv, "/n").ACL)
		require.Equal(t, int32(1), node(t, srv, "/n").Stat.Aversion)
	})
}

func TestANodeTellsWhatKindItIs(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	srv.Create("/c", nil, zk.FlagContainer, 0)
	srv.Create("/c/n-", nil, zk.FlagSequence, 0)
	require.True(t, node(t, srv, "/c").Container)
	require.Equal(t, int32(1), node(t, srv, "/c").Sequence)
	require.False(t, node(t, srv, "/c/n-0000000000").Container)
}

func TestWhatCannotBeDoneWithoutAClientFailsTheTest(t *testing.T) {
	t.Parallel()
	tb := &fakeTB{TB: t}
	srv := zktest.Run(tb)
	for _, c := range []struct {
		do   func()
		says string
	}{
		{func() { srv.Set("/nope", nil) }, "zktest: set /nope: no such node"},
		{func() { srv.Delete("/nope") }, "zktest: delete /nope: no such node"},
		{func() { srv.Delete("/zookeeper") }, "zktest: delete /zookeeper: bad arguments: the server's own node"},
		{func() { srv.SetSequence("/nope", 1) }, "zktest: SetSequence: no node /nope"},
		{func() { srv.Create("/nope/x", nil, 0, 0) }, "zktest: create /nope/x: no such node, or no parent for it"},
		{func() { srv.Create("/", nil, 0, 0) }, "zktest: create /: "},
		{func() { srv.Create("x", nil, 0, 0) }, "zktest: create x: bad arguments"},
		{func() { srv.Create("/e", nil, zk.FlagEphemeral, 0) }, "zktest: create /e: no session 0x0 to own the ephemeral; those that live: none"},
		{func() { srv.SetACL("/nope", open...) }, "zktest: set the ACL of /nope: no such node"},
		{func() { srv.SetACL("/") }, "zktest: set the ACL of /: "},
		{func() { srv.Load(map[string]string{"a": ""}) }, "zktest: load a: bad arguments"},
		{func() { srv.Load(map[string]string{"/a/": ""}) }, "zktest: load /a/: bad arguments"},
		{func() { srv.Stop(); srv.Set("/", nil) }, "zktest: set /: server is stopped or closed"},
	} {
		tb.errors = nil
		c.do()
		require.Len(t, tb.errors, 1, c.says)
		require.Contains(t, tb.errors[0], c.says)
	}
	tb.errors = nil
	tb.finish()
	require.Empty(t, tb.errors)
	require.Panics(t, func() { zktest.Start().Set("/nope", nil) }, "there is no test to fail")
}
