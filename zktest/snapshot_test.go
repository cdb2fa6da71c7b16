package zktest_test

import (
	"math"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// contentsOf leaves out what goes on: times, versions, transactions.
func contentsOf(snapshot map[string]zktest.Node) map[string]zktest.Node {
	for p, n := range snapshot {
		n.Stat = zk.Stat{}
		snapshot[p] = n
	}
	return snapshot
}

func TestASnapshotIsRestoredWithItsACLs(t *testing.T) {
	fill := func(srv *zktest.Server) {
		srv.Load(map[string]string{"/app": "x", "/app/a": "1", "/app/a/b": "", "/other": "o"})
		srv.SetACL("/app/a", zk.DigestACL(zk.PermRead, "u", "p")...)
		srv.Create("/app/box", nil, zk.FlagContainer, 0)
		srv.Create("/app/box/q-", nil, zk.FlagSequence, 0)
		srv.SetSequence("/app/a", math.MaxInt32)
	}
	spoil := func(srv *zktest.Server) {
		srv.Set("/app", []byte("y"))
		srv.SetACL("/app", zk.WorldACL(zk.PermRead)...)
		srv.DeleteAll("/app/a")
		srv.DeleteAll("/app/box")
		srv.Create("/app/box", nil, 0, 0)
		srv.Load(map[string]string{"/app/new/er": "", "/other": "changed"})
	}
	srv, other := zktest.Run(t), zktest.Run(t)
	fill(srv)
	snapshot := srv.Snapshot("/app")
	spoil(srv)
	srv.Restore("/app", snapshot)
	require.Equal(t, contentsOf(snapshot), contentsOf(srv.Snapshot("/app")))
	n, _ := srv.Node("/other")
	require.Equal(t, "changed", string(n.Data), "what is elsewhere stays")
	zxid := srv.Zxid()
	srv.Restore("/app", snapshot)
	require.Equal(t, zxid, srv.Zxid(), "nothing is written where nothing differs")

	all := srv.Snapshot("/")
	require.NotContains(t, all, "/zookeeper")
	other.Restore("/", all)
	require.Equal(t, contentsOf(all), contentsOf(other.Snapshot("/")))
}

func TestEphemeralsAreNotBroughtBack(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Create("/stays", nil, zk.FlagEphemeral, conn.SessionID())
		gone := srv.Connect(t, 10*time.Second)
		mustCreate(t, gone, "/gone", zk.FlagEphemeral)
		snapshot := srv.Snapshot("/")
		require.True(t, srv.Expire(gone.SessionID()))
		mustCreate(t, conn, "/later", zk.FlagEphemeral)
		srv.Restore("/", snapshot)
		zktest.CheckTree(t, srv, "/", map[string]string{"/stays": ""})
	})
}

func TestNodesWithATimeToLiveAreRestored(t *testing.T) {
	srv := zktest.Run(t, zktest.WithExtendedTypes())
	want := map[string]zktest.Node{"/": {ACL: zk.WorldACL(zk.PermAll)}, "/ttl": {ACL: zk.WorldACL(zk.PermAll), TTL: time.Minute, Data: []byte("x")}}
	srv.Restore("/", want)
	n, ok := srv.Node("/ttl")
	require.True(t, ok)
	require.Equal(t, time.Minute, n.TTL)
	require.Panics(t, func() { zktest.Start().Restore("/", want) }, "without extended types there is no such node")
}

func TestRequestsAreCountedForEachSession(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		other := srv.Connect(t, 10*time.Second)
		mustCreate(t, conn, "/a", 0)
		mustCreate(t, other, "/b", 0)
		mustCreate(t, other, "/c", 0)
		_, err := other.Sync("/")
		require.NoError(t, err)
		require.Equal(t, 1, srv.RequestsOf(conn.SessionID(), zktest.Any))
		require.Equal(t, 2, srv.RequestsOf(other.SessionID(), zktest.Any))
		require.Equal(t, 2, srv.RequestsOf(other.SessionID(), zktest.Create))
		require.Equal(t, 1, srv.RequestsOf(other.SessionID(), zktest.Ping), "a heartbeat of this module's sessions")
		require.Zero(t, srv.RequestsOf(4711, zktest.Any))
		require.Equal(t, 3, srv.Requests())
	})
}

func TestASyncIsNoHeartbeatWhereNobodySaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		held := srv.Intercept(zktest.On(zktest.Any, "**").Hold())
		done := make(chan error, 1)
		go func() {
			_, err := conn.Sync("/")
			done <- err
		}()
		require.NoError(t, held.WaitHeld(t.Context()))
		require.Equal(t, 1, srv.Requests())
		require.Equal(t, 1, srv.RequestsBy(zktest.Sync))
		held.Remove()
		require.NoError(t, <-done)
	}, zktest.WithHeartbeat(""))
}
