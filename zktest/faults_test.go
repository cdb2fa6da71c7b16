package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestAPartitionedSessionExpiresAtTheFirstTickAfterItsTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		id := conn.SessionID()
		var expired time.Time
		srv.OnSessionExpired(func(got int64, at time.Time) {
			if got == id {
				expired = at
			}
		})
		start := time.Now()
		heal := srv.Partition(id)
		time.Sleep(10*time.Second + 999*time.Millisecond)
		require.True(t, expired.IsZero())
		zktest.CheckNode(t, srv, "/e", nil)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, 11*time.Second, expired.Sub(start))
		zktest.CheckNoNode(t, srv, "/e")
		require.Equal(t, id, conn.SessionID(), "the client cannot know")
		heal()
		heal()
		time.Sleep(time.Minute)
		require.NotEqual(t, id, conn.SessionID())
		require.Equal(t, zk.StateHasSession, conn.State())
	}, zktest.WithTick(time.Second))
}

func TestAPartitionShorterThanTheTimeoutIsARetransmission(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		heal := srv.Partition(conn.SessionID())
		done := createAsync(conn, "/late", 0)
		require.True(t, pending(done))
		zktest.CheckNoNode(t, srv, "/late")
		time.Sleep(time.Second)
		heal()
		require.NoError(t, <-done)
		zktest.CheckNode(t, srv, "/late", nil)
	})
}

func TestWhatAClientSentBeforeItGaveUpNeverArrives(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		id := conn.SessionID()
		heal := srv.Partition(id)
		done := createAsync(conn, "/late", 0)
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed) // after 2/3 of the timeout
		heal()
		_, _, err := conn.Exists("/")
		require.NoError(t, err)
		require.Equal(t, id, conn.SessionID())
		zktest.CheckNoNode(t, srv, "/late")
	})
}

func TestOneWayPartitions(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		id := conn.SessionID()
		heal := srv.DropReplies(id)
		done := createAsync(conn, "/applied", 0)
		require.True(t, pending(done))
		zktest.CheckNode(t, srv, "/applied", nil)
		heal()
		require.NoError(t, <-done)

		heal = srv.DropRequests(id)
		_, _, events, err := conn.ExistsW("/applied")
		_ = events
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		heal()
		_, _, err = conn.Exists("/applied")
		require.NoError(t, err)
	})
}

func TestOverlappingPartitionsLastUntilAllAreHealed(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		id := conn.SessionID()
		first, second := srv.Partition(id), srv.Partition(id)
		done := createAsync(conn, "/n", 0)
		first()
		first() // once more does not count
		require.True(t, pending(done))
		second()
		require.NoError(t, <-done)
	})
}

func TestExpireIsSeenByEverybodyButTheClientAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		other := srv.Connect(t, 10*time.Second)
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		_, _, events, err := other.ExistsW("/e")
		require.NoError(t, err)
		id := conn.SessionID()
		require.True(t, srv.Expire(id))
		zktest.CheckNoNode(t, srv, "/e")
		require.False(t, srv.Expire(id), "it is gone")
		require.Equal(t, zk.EventNodeDeleted, (<-events).Type)
		time.Sleep(2 * time.Second)
		require.NotEqual(t, id, conn.SessionID())
		require.Equal(t, zk.StateHasSession, conn.State())
	})
}

func TestASilentlyExpiredClientLearnsWhenItIsHealed(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		id := conn.SessionID()
		heal := srv.ExpireSilently(id)
		zktest.CheckNoNode(t, srv, "/e")
		time.Sleep(time.Minute)
		require.Equal(t, id, conn.SessionID())
		heal()
		time.Sleep(time.Minute)
		require.NotEqual(t, id, conn.SessionID())
		require.Equal(t, zk.StateHasSession, conn.State())
	})
}

func TestADisconnectedSessionLives(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		id := conn.SessionID()
		heal := srv.Refuse() // or the client may be back before anybody looks
		require.True(t, srv.Disconnect(id))
		require.False(t, srv.Sessions()[0].Connected)
		require.False(t, srv.Disconnect(id), "it has no connection now")
		heal()
		synctest.Wait() // or the client writes into the closed pipe
		_, _, err := conn.Exists("/e")
		require.NoError(t, err)
		require.Equal(t, id, conn.SessionID())
		require.True(t, srv.Sessions()[0].Connected)
		zktest.CheckNode(t, srv, "/e", nil)
	})
}

func TestDelaysAddUpInEachDirectionAndDoNotStretchAPipeline(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		heal := srv.Delay(conn.SessionID(), 200*time.Millisecond, 100*time.Millisecond)
		start := time.Now()
		a, b := createAsync(conn, "/a", 0), createAsync(conn, "/b", 0)
		time.Sleep(199 * time.Millisecond)
		synctest.Wait()
		zktest.CheckNoNode(t, srv, "/a")
		require.NoError(t, <-a)
		require.NoError(t, <-b)
		require.Equal(t, 300*time.Millisecond, time.Since(start))
		require.Equal(t, start.UnixMilli()+200, node(t, srv, "/b").Stat.Ctime)
		heal()
		start = time.Now()
		mustCreate(t, conn, "/c", 0)
		require.Zero(t, time.Since(start))
	})
}

func node(t *testing.T, srv *zktest.Server, path string) zktest.Node {
	t.Helper()
	n, ok := srv.Node(path)
	require.True(t, ok, path)
	return n
}

func TestAfterAFreezeWhatIsDueExpiresBeforeHeldRequestsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		other := srv.Connect(t, time.Hour)
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		id := conn.SessionID()
		thaw := srv.Freeze()
		late := make(chan bool, 1)
		go func() {
			found, _, err := other.Exists("/e")
			require.NoError(t, err)
			late <- found
		}()
		time.Sleep(30 * time.Second)
		require.True(t, pending(late))
		zktest.CheckNode(t, srv, "/e", nil)
		require.Len(t, srv.Sessions(), 2, "time stands still for the server")
		thaw()
		require.False(t, <-late)
		time.Sleep(time.Minute)
		require.NotEqual(t, id, conn.SessionID())
	})
}

func TestAShortFreezeIsOnlyAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		thaw := srv.Freeze()
		done := createAsync(conn, "/n", 0)
		time.Sleep(3 * time.Second)
		require.True(t, pending(done))
		thaw()
		thaw() // not frozen: no effect
		require.NoError(t, <-done)
	})
}

func TestARestartKeepsDataAndSessionsAndGivesThemTheirFullTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		id, zxid := conn.SessionID(), srv.Zxid()
		srv.Stop()
		_, err := conn.Create("/x", nil, 0, open)
		require.Error(t, err)
		time.Sleep(time.Minute) // far longer than the session's timeout
		srv.Restart()
		zktest.CheckNode(t, srv, "/e", nil)
		time.Sleep(5 * time.Second)
		require.Equal(t, zk.StateHasSession, conn.State())
		require.Equal(t, id, conn.SessionID())
		mustCreate(t, conn, "/y", 0)
		require.Equal(t, zxid+1, srv.Zxid(), "the history goes on")
	})
}

func TestAfterAnEmptyRestartClientsAreRefusedBecauseTheyHaveSeenMore(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		mustCreate(t, conn, "/n", 0)
		srv.RestartEmpty()
		time.Sleep(100 * time.Millisecond)
		require.NotEqual(t, zk.StateHasSession, conn.State())
		zktest.CheckNoNode(t, srv, "/n")
		require.Empty(t, srv.Sessions())
		srv.SetZxid(1000)
		time.Sleep(time.Minute)
		require.Equal(t, zk.StateHasSession, conn.State())
	})
}

func TestARefusingServerKeepsItsConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		allow := srv.Refuse()
		mustCreate(t, conn, "/n", 0)
		srv.Disconnect(conn.SessionID())
		_, _, err := conn.Exists("/n")
		require.Error(t, err)
		allow()
		allow()
		time.Sleep(3 * time.Second)
		_, _, err = conn.Exists("/n")
		require.NoError(t, err)
	})
}

func TestWatchesOfASilentPartitionAreCaughtUp(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Create("/n", nil, 0, 0)
		_, _, events, err := conn.GetW("/n")
		require.NoError(t, err)
		heal := srv.Partition(conn.SessionID())
		srv.Set("/n", []byte("new"))
		require.True(t, pending(events))
		time.Sleep(8 * time.Second) // the client gives the connection up
		heal()
		require.Equal(t, zk.EventNodeDataChanged, (<-events).Type)
	})
}

func TestAPartitionOfNobodyKeepsNewClientsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		heal := srv.Partition(0)
		time.AfterFunc(3*time.Second, heal)
		start := time.Now()
		srv.Connect(t, 10*time.Second)
		require.Less(t, 3*time.Second, time.Since(start))
		_, _, err := conn.Exists("/")
		require.NoError(t, err, "who has a session goes on")
	})
}

// Nobody is refused between the end of the old server and the start of the new one: when a client is back would
// depend on the machine's speed, since it waits for a second then.
func TestAClientIsBackAtTheInstantOfARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		for range 500 {
			srv.Restart()
			synctest.Wait()
			require.Equal(t, zk.StateHasSession, conn.State())
			time.Sleep(time.Millisecond) // a client that connects ten times at one instant pauses
		}
	})
}

func TestADelayThatWasReplacedDoesNotEndTheOneThatReplacedIt(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		took := func() time.Duration {
			start := time.Now()
			_, _, err := conn.Exists("/")
			require.NoError(t, err)
			return time.Since(start)
		}
		first := srv.Delay(conn.SessionID(), time.Second, 0)
		second := srv.Delay(conn.SessionID(), 0, 2*time.Second)
		first()
		require.Equal(t, 2*time.Second, took())
		second()
		second()
		require.Zero(t, took())
	})
}

func TestResultsHaveTheNamesOfTheDocumentation(t *testing.T) {
	require.Equal(t, "ok", zktest.CodeOK.String())
	require.Equal(t, "noNode", zktest.CodeNoNode.String())
	require.Equal(t, "connectionLoss", zktest.CodeConnectionLoss.String())
	require.Equal(t, "code-9999", zktest.Code(-9999).String())
}
