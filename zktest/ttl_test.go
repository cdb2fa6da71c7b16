package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestNodesWithATimeToLiveExpireInVirtualTime(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		path, err := conn.CreateTTL("/lease-", nil, zk.FlagPersistentSequentialWithTTL, open, 90*time.Second)
		require.NoError(t, err)
		require.Equal(t, "/lease-0000000000", path)
		require.Equal(t, 90*time.Second, node(t, srv, path).TTL)
		require.Zero(t, node(t, srv, path).Stat.EphemeralOwner)
		require.Contains(t, srv.Tree(), "/lease-0000000000 ttl 1m30s\n")
		require.Equal(t, 1, srv.RequestsBy(zktest.Create))
		time.Sleep(119 * time.Second)
		zktest.CheckNode(t, srv, path, nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		zktest.CheckNoNode(t, srv, path) // at the second look, after two minutes
	}, zktest.WithExtendedTypes())
}

func TestATimeToLiveNeedsExtendedTypes(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		_, err := conn.CreateTTL("/lease", nil, zk.FlagTTL, open, time.Minute)
		require.Error(t, err)
		log := srv.Log()
		require.EqualValues(t, -6, log[len(log)-1].Code, "unimplemented")
		zktest.CheckNoNode(t, srv, "/lease")
	})
}

func TestATestCanWaitForANodeToOutliveItsTime(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.WithExtendedTypes(), zktest.WithManualClock(), zktest.WithContainerInterval(time.Second))
	conn := dialTCP(t, srv)
	_, err := conn.CreateTTL("/lease", nil, zk.FlagTTL, open, time.Minute)
	require.NoError(t, err)
	srv.Advance(time.Minute)
	zktest.CheckNode(t, srv, "/lease", nil)
	srv.Advance(time.Second)
	zktest.CheckNoNode(t, srv, "/lease")
}

func TestContainersThatAreNeverUsedCanBeRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		_, err := conn.CreateContainer("/box", nil, zk.FlagContainer, open)
		require.NoError(t, err)
		time.Sleep(59 * time.Second)
		zktest.CheckNode(t, srv, "/box", nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		zktest.CheckNoNode(t, srv, "/box")
	}, zktest.WithUnusedContainers(10*time.Second))
}
