package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheGoClientTellsItsStatesThroughCallbackAndChannel(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		require.Equal(t, "Connecting, Connected, HasSession", c.told())
		for _, want := range []zk.State{zk.StateConnecting, zk.StateConnected, zk.StateHasSession} {
			e := take(t, c.channel)
			require.Equal(t, zk.Event{Type: zk.EventSession, State: want, Server: "a:2181"}, e)
		}
		require.Equal(t, "a:2181", c.Server())
		require.Equal(t, srv.Sessions()[0].ID, c.SessionID())
		c.Close()
		require.Equal(t, "Disconnected", c.told())
		require.Equal(t, zk.StateDisconnected, take(t, c.channel).State)
		require.True(t, closed(c.channel), "that is the end")
		require.Empty(t, srv.Sessions(), "closing ends the session")
	})
}

func TestTheGoClientKeepsItsSessionOverAReconnect(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/e", zk.FlagEphemeral)
		id := c.SessionID()
		c.told()
		require.True(t, srv.Disconnect(id))
		require.Equal(t, "Disconnected, Connecting, Connected, HasSession", c.told())
		require.Equal(t, id, c.SessionID())
		require.Equal(t, "b:2181", c.Server(), "the next in the list")
		_, stat, err := c.Exists("/e")
		require.NoError(t, err)
		require.Equal(t, id, stat.EphemeralOwner)
	})
}

func TestTheGoClientGetsANewSessionWhenItsOwnHasExpired(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/e", zk.FlagEphemeral)
		_, _, watch, err := c.GetW("/e")
		require.NoError(t, err)
		id := c.SessionID()
		c.told()
		require.True(t, srv.Expire(id))
		require.Equal(t, "Disconnected, Connecting, Connected, Expired, NotWatching /e, "+
			"Disconnected, Connecting, Connected, HasSession", c.told())
		e := take(t, watch)
		require.Equal(t, zk.EventNotWatching, e.Type)
		require.ErrorIs(t, e.Err, zk.ErrSessionExpired)
		require.True(t, closed(watch))
		require.NotEqual(t, id, c.SessionID())
		zktest.CheckNoNode(t, srv, "/e")
		mustCreate(t, c.Conn, "/e", zk.FlagEphemeral)
		require.Equal(t, c.SessionID(), node(t, srv, "/e").Stat.EphemeralOwner)
	})
}

// The client learns from a server only: nothing happens while it is cut off, however long.
func TestTheGoClientLearnsOfAnExpiryWhenItIsBack(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		id := c.SessionID()
		allow := srv.Refuse()
		require.True(t, srv.Disconnect(id))
		<-time.After(time.Minute)
		require.NotContains(t, c.told(), "Expired")
		require.Equal(t, id, c.SessionID())
		require.Empty(t, srv.Sessions())
		allow()
		<-time.After(time.Second)
		require.Contains(t, c.told(), "Expired")
		require.NotEqual(t, id, c.SessionID())
	})
}

func TestTheGoClientHeartbeatsThreeTimesPerTimeout(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		count := func() (n int) {
			for _, r := range srv.Log() {
				if r.Op == zktest.Ping {
					n++
				}
			}
			return n
		}
		before := count()
		<-time.After(time.Hour)
		synctest.Wait()
		require.Equal(t, 360, count()-before)
		require.Equal(t, "Connecting, Connected, HasSession", c.told(), "nothing else has happened")
	})
}

func TestTheGoClientTakesTheTimeoutThatTheServerGrants(t *testing.T) {
	t.Parallel()
	for _, ask := range []time.Duration{time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t, zktest.WithTimeoutLimits(6*time.Second, 12*time.Second))
			newGozk(t, srv.Dial, &hostList{}, ask)
			synctest.Wait()
			require.Equal(t, min(max(ask, 6*time.Second), 12*time.Second), srv.Sessions()[0].Timeout)
			<-time.After(time.Hour)
			require.Len(t, srv.Sessions(), 1, "heartbeats go by the timeout that was granted")
		})
	}
}

// Two thirds of the timeout without a word, and the client looks for another server.
func TestTheGoClientGivesUpASilentServer(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		id := c.SessionID()
		_, _, err := c.Get("/")
		require.NoError(t, err)
		c.told()
		silent := srv.DropReplies(id)
		<-time.After(20*time.Second - time.Millisecond)
		require.Empty(t, c.told())
		<-time.After(time.Millisecond)
		require.Equal(t, "Disconnected, Connecting, Connected", c.told())
		silent()
		<-time.After(time.Millisecond)
		require.Equal(t, "HasSession", c.told())
		require.Equal(t, id, c.SessionID(), "the server heard from it all the time")
	})
}

func TestRequestsOfTheGoClientTakeAsLongAsTheServer(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		srv.Delay(c.SessionID(), 3*time.Second, 4*time.Second)
		begin := time.Now()
		_, _, err := c.Get("/")
		require.NoError(t, err)
		require.Equal(t, 7*time.Second, time.Since(begin))
		require.Equal(t, "Connecting, Connected, HasSession", c.told(), "slow is not gone")
		srv.Delay(c.SessionID(), 0, 0) // closing does not wait so long
	})
}

func TestTheGoClientIsClosedOnceAndForAll(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/n", 0)
		_, _, watch, err := c.GetW("/n")
		require.NoError(t, err)
		c.Close()
		c.Close()
		for range c.channel { // until its goroutines have ended: a request meanwhile could block them for ever
		}
		_, _, err = c.Get("/n")
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		for e := range watch {
			require.Equal(t, zk.EventNotWatching, e.Type)
			require.ErrorIs(t, e.Err, zk.ErrClosing)
		}
		require.Empty(t, srv.Sessions())
	})
}

// It does not wait for long for a server that does not answer; the session then ends by itself.
func TestClosingTheGoClientTakesASecondAtMost(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		silent := srv.DropReplies(c.SessionID())
		defer silent()
		thaw := srv.Freeze()
		begin := time.Now()
		c.Close()
		require.Equal(t, time.Second, time.Since(begin))
		require.Len(t, srv.Sessions(), 1)
		thaw()
		synctest.Wait()
		require.Empty(t, srv.Sessions(), "the request has arrived")
	})
}

// After one round through the list it fails what waits and pauses for a second.
func TestTheGoClientPausesWhenNoServerTakesIt(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		id := c.SessionID()
		c.told()
		allow := srv.Refuse()
		require.True(t, srv.Disconnect(id))
		synctest.Wait()
		require.Equal(t, "Disconnected, Connecting, Connecting, Connecting, Connecting", c.told())
		begin := time.Now()
		_, _, err := c.Get("/")
		require.ErrorIs(t, err, zk.ErrNoServer)
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, "Connecting, Connecting, Connecting", c.told())
		allow()
		<-time.After(time.Second + time.Millisecond)
		require.Equal(t, id, c.SessionID())
		require.Equal(t, zk.StateHasSession, c.State())
		_, _, err = c.Get("/")
		require.NoError(t, err)
	})
}

func TestTheGoClientNeedsAServer(t *testing.T) {
	t.Parallel()
	_, _, err := zk.Connect(nil, time.Second)
	require.EqualError(t, err, "zk: server list must not be empty")
}
