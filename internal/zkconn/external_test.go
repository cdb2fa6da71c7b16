package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

func external(t *testing.T, srv *zktest.Server) (*zk.Conn, *zkconn.Client, *zkconn.Epoch) {
	t.Helper()
	conn := srv.Connect(t, timeout)
	c := zkconn.External(zkconn.Config{Timeout: timeout}, conn)
	t.Cleanup(c.Close)
	e, err := c.Epoch(t.Context())
	require.NoError(t, err)
	return conn, c, e
}

func TestAnExternalConnectionKeepsItsSessionWhenItsClientIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, c, e := external(t, srv)
		require.Equal(t, conn.SessionID(), e.ID())
		require.False(t, e.Ordered())
		time.Sleep(time.Minute)
		require.True(t, e.Valid(), "requests of our own keep its clock going")
		c.Close()
		_, _, err := conn.Exists("/")
		require.NoError(t, err)
	})
}

func TestNothingIsAskedOfAnExternalConnectionThatItsOwnerHasClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _, e := external(t, zktest.Run(t))
		synctest.Wait()
		conn.Close()
		// Those that the client library takes nevertheless fail with another error: of eight it would take some.
		for range 8 {
			_, err := e.StartDelete("/a").Wait(t.Context(), e)
			require.ErrorIs(t, err, zkconn.ErrNotSent)
		}
		told := make(chan zkconn.Event, 1)
		e.WatchAll([]string{"/a"}, func(_ string, n zkconn.Event) { told <- n }, nil)
		require.Equal(t, zkconn.Disconnected, <-told)
	})
}

// The lease ends at 19/20 of the timeout, and heartbeats come at a third of that: one that was left out must not be the last.
func TestAnExternalConnectionThatIsBackInTimeKeepsItsEpoch(t *testing.T) {
	for phase := timeout / 20; phase <= 6*timeout/20; phase += timeout / 20 {
		for _, out := range []time.Duration{6 * timeout / 20, 7 * timeout / 20, 9 * timeout / 20} {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				conn, _, e := external(t, srv)
				srv.Delay(conn.SessionID(), time.Millisecond, time.Millisecond)
				time.Sleep(timeout*19/20*2/3 + phase) // after the second heartbeat
				allow := unreachable(srv, conn)
				time.Sleep(out)
				allow()
				time.Sleep(timeout)
				require.NoError(t, e.Cause(), "cut off %v after a heartbeat, for %v", phase, out)
			})
		}
	}
}

func TestCloseAsksNothingMoreOfAnExternalConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, c, _ := external(t, srv)
		synctest.Wait()
		asked := srv.Intercept(zktest.On(zktest.Sync, "/"))
		c.Close()
		synctest.Wait()
		require.Zero(t, asked.Matched())
	})
}

// The owner closes the connection next, and a request of ours that is on its way then can have the client library's
// goroutine stand still for ever.
func TestCloseLeavesNoRequestOfOursOnAnExternalConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, c, _ := external(t, srv)
		held := srv.Intercept(zktest.On(zktest.Sync, "/").Hold())
		require.NoError(t, held.WaitHeld(t.Context()))
		time.AfterFunc(300*time.Millisecond, held.Release)
		sent := time.Now()
		c.Close()
		require.Equal(t, 300*time.Millisecond, time.Since(sent))
	})
}

func TestAnExternalConnectionsNewSessionIsAnotherEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, c, e := external(t, srv)
		srv.Expire(e.ID())
		next := nextEpoch(t, c, e)
		require.NotEqual(t, e.ID(), next.ID())
		require.ErrorIs(t, e.Cause(), zkconn.ErrOver)
	})
}

func TestAnExternalConnectionThatIsCutOffIsLostByOurClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, _, e := external(t, srv)
		expired := make(chan time.Time, 1)
		id := e.ID()
		srv.OnSessionExpired(func(i int64, at time.Time) {
			if i == id {
				expired <- at
			}
		})
		heal := srv.Partition(id)
		<-e.Over()
		lost := time.Now()
		at := <-expired
		require.True(t, lost.Before(at), "told at %v, expired at %v", lost, at)
		heal()
	})
}

// The session does not end with us, so the reaper must remove what is left.
func TestTheReaperOfAnExternalConnectionOutlivesItsEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, c, e := external(t, srv)
		dir(t, e, "_c_1-lock-0")
		done := e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"})
		c.Stop(zkconn.Closing)
		reaped(t, done, time.Second)
		zktest.CheckChildren(t, srv, "/d")
		_, _, err := conn.Exists("/")
		require.NoError(t, err)
	})
}

func TestAnExternalConnectionTellsOfWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, _, e := external(t, srv)
		dir(t, e, "a", "b")
		news := make(chan string, 10)
		e.WatchAll([]string{"/d/a", "/d/b", "/d/none"}, func(path string, n zkconn.Event) {
			if n == zkconn.Deleted || n == zkconn.NotFound {
				news <- path
			}
		}, nil)
		require.Equal(t, "/d/none", <-news)
		synctest.Wait()
		srv.Delete("/d/a")
		require.Equal(t, "/d/a", <-news)
		srv.Delete("/d/b")
		require.Equal(t, "/d/b", <-news)
	})
}
