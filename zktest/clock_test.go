package zktest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestWithAManualClockSessionsExpireWhenTheTestSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithManualClock(), zktest.WithTick(time.Second))
		start := srv.Now()
		conn := srv.Connect(t, 10*time.Second)
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		var expired []time.Duration
		srv.OnSessionExpired(func(_ int64, at time.Time) { expired = append(expired, at.Sub(start)) })
		heal := srv.Partition(conn.SessionID())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, srv.Sessions(), 1, "the clock of the process does not count")
		require.Equal(t, start, srv.Now())

		srv.Advance(10 * time.Second)
		zktest.CheckNode(t, srv, "/e", nil)
		require.Equal(t, start.Add(11*time.Second), srv.Sessions()[0].Expires)
		srv.Advance(time.Second)
		zktest.CheckNoNode(t, srv, "/e")
		require.Equal(t, []time.Duration{11 * time.Second}, expired)
		require.Equal(t, start.Add(11*time.Second), srv.Now())
		heal()
	})
}

func TestAdvanceKeepsTheSessionsOfClientsThatCanBeHeard(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.WithManualClock())
	live, cut := dialTCP(t, srv), dialTCP(t, srv)
	mustCreate(t, live, "/live", zk.FlagEphemeral)
	mustCreate(t, cut, "/cut", zk.FlagEphemeral)
	gone := dialTCP(t, srv)
	mustCreate(t, gone, "/gone", zk.FlagEphemeral)
	deaf := srv.DropRequests(cut.SessionID())
	defer deaf()
	away := srv.Partition(gone.SessionID())
	defer away()
	srv.Disconnect(gone.SessionID())

	srv.Advance(9 * time.Second)
	zktest.CheckChildren(t, srv, "/", "live", "cut", "gone", "zookeeper")
	srv.Advance(24 * time.Hour)
	zktest.CheckChildren(t, srv, "/", "live", "zookeeper")
	_, err := live.Set("/live", []byte("here"), -1)
	require.NoError(t, err, "it has not noticed anything")
}

func TestARunningClockCanBeAdvancedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithTick(time.Second))
		start := time.Now()
		conn := srv.Connect(t, 10*time.Second)
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		heal := srv.Partition(conn.SessionID())
		srv.Advance(8 * time.Second)
		require.Equal(t, start.Add(8*time.Second), srv.Now())
		time.Sleep(3*time.Second - time.Nanosecond)
		synctest.Wait()
		zktest.CheckNode(t, srv, "/e", nil)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		zktest.CheckNoNode(t, srv, "/e")
		heal()
	})
}

func TestWhatIsDueOnTheWayHappensInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithManualClock(), zktest.WithCommitLatency(time.Millisecond))
		start := srv.Now()
		short, long := srv.Connect(t, 10*time.Second), srv.Connect(t, 30*time.Second)
		srv.Create("/box", nil, zk.FlagContainer, 0)
		mustCreate(t, long, "/box/long", zk.FlagEphemeral)
		mustCreate(t, short, "/box/short", zk.FlagEphemeral)
		var story []string
		srv.OnCommit(func(x zktest.Txn) {
			for _, c := range x.Changes {
				story = append(story, fmt.Sprint(x.Time.Sub(start), " ", c.Path))
			}
		})
		healShort, healLong := srv.Partition(short.SessionID()), srv.Partition(long.SessionID())
		defer healShort()
		defer healLong()
		srv.Advance(time.Minute)
		require.Equal(t, []string{"10.05s /box/short", "30.05s /box/long", "1m0s /box"}, story)
	})
}

func TestAFrozenServerMakesUpForTheTimeThatWasAdvanced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithManualClock())
		conn := srv.Connect(t, 10*time.Second)
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		thaw := srv.Freeze()
		srv.Advance(time.Minute)
		zktest.CheckNode(t, srv, "/e", nil)
		thaw()
		zktest.CheckNoNode(t, srv, "/e")
	})
}

func TestTheTimeOfDayCanBeSet(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.WithManualClock())
	conn := dialTCP(t, srv)
	day := time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)
	srv.SetTime(day)
	require.True(t, srv.Sessions()[0].LastHeard.Equal(day), "it was heard of no time ago, whatever time it is")
	mustCreate(t, conn, "/a", 0)
	require.Equal(t, day.UnixMilli(), node(t, srv, "/a").Stat.Ctime)
	require.True(t, srv.Sessions()[0].LastHeard.Equal(day))
	require.True(t, srv.Sessions()[0].Expires.After(day.Add(10*time.Second)))
	srv.Advance(time.Second)
	_, err := conn.Set("/a", nil, -1)
	require.NoError(t, err)
	require.Equal(t, day.Add(time.Second).UnixMilli(), node(t, srv, "/a").Stat.Mtime)
	log := srv.Log()
	require.True(t, log[len(log)-1].Time.Equal(day.Add(time.Second)))
	require.Len(t, srv.Sessions(), 1, "sessions do not go by the time of day")
}

func TestTimeDoesNotGoBack(t *testing.T) {
	tb := &fakeTB{TB: t}
	srv := zktest.Run(tb)
	srv.Advance(-time.Second)
	require.Len(t, tb.errors, 1)
	require.Contains(t, tb.errors[0], "time does not go back")
	tb.finish()
}

func TestTheClockOfAnEnsembleCanBeMovedByHand(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		live, cut := e.ConnectAt(t, 0, 10*time.Second), e.ConnectAt(t, 1, 10*time.Second)
		mustCreate(t, live, "/live", zk.FlagEphemeral)
		mustCreate(t, cut, "/cut", zk.FlagEphemeral)
		heal := e.Partition(cut.SessionID())
		time.Sleep(time.Minute)
		synctest.Wait()
		zktest.CheckNode(t, e.Server(0), "/cut", nil)
		e.Server(1).Advance(9 * time.Second)
		zktest.CheckNode(t, e.Server(0), "/cut", nil)
		e.Server(1).Advance(time.Minute)
		for i := range e.Len() {
			zktest.CheckChildren(t, e.Server(i), "/", "live", "zookeeper")
		}
		e.Server(e.Leader()).Stop()
		e.WaitLeader(t)
		synctest.Wait()
		zktest.CheckChildren(t, e.Server(0), "/", "live", "zookeeper")
		heal()
		time.Sleep(time.Minute) // of which the servers' clocks know nothing
		synctest.Wait()
		e.Server(0).Advance(time.Minute)
		zktest.CheckChildren(t, e.Server(0), "/", "live", "zookeeper")
	}, zktest.WithManualClock())
}

func TestAdvanceBringsTheNextLookAtContainersNearer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		srv.Create("/box", nil, zk.FlagContainer, 0)
		srv.Create("/box/n", nil, 0, 0)
		srv.Delete("/box/n")
		srv.Advance(50 * time.Second)
		zktest.CheckNode(t, srv, "/box", nil)
		time.Sleep(10*time.Second - time.Millisecond)
		synctest.Wait()
		zktest.CheckNode(t, srv, "/box", nil)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		zktest.CheckNoNode(t, srv, "/box")
	})
}
