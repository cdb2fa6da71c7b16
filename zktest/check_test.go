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

func TestChecksReportWhatDiffers(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Load(map[string]string{"/a": "x", "/a/b": ""})
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		_, _, _, err := conn.GetW("/a")
		require.NoError(t, err)
		id := conn.SessionID()
		passes := &fakeTB{TB: t}
		zktest.CheckNode(passes, srv, "/a", []byte("x"))
		zktest.CheckNode(passes, srv, "/a/b", nil)
		zktest.CheckNoNode(passes, srv, "/c")
		zktest.CheckChildren(passes, srv, "/a", "b")
		zktest.CheckChildren(passes, srv, "/", "zookeeper", "e", "a")
		zktest.CheckChildren(passes, srv, "/a/b")
		zktest.CheckEphemerals(passes, srv, id, "/e")
		zktest.CheckSessions(passes, srv, id)
		zktest.CheckWatched(passes, srv, "/a", 1)
		zktest.CheckWatched(passes, srv, "/e", 0)
		zktest.CheckTree(passes, srv, "/a", map[string]string{"/a": "x", "/a/b": ""})
		require.Empty(t, passes.errors)

		for _, c := range []struct {
			check func(testing.TB)
			says  string
		}{
			{func(t testing.TB) { zktest.CheckNode(t, srv, "/a", []byte("y")) }, `node /a has data "x", want "y"`},
			{func(t testing.TB) { zktest.CheckNode(t, srv, "/a", []byte{1}) }, `node /a has data "x", want 1 bytes 01`},
			{func(t testing.TB) { zktest.CheckNode(t, srv, "/a/b", []byte("y")) }, `node /a/b has data none, want "y"`},
			{func(t testing.TB) { zktest.CheckNode(t, srv, "/c", nil) }, "no node /c\n"},
			{func(t testing.TB) { zktest.CheckNoNode(t, srv, "/a") }, "there is a node /a\n"},
			{func(t testing.TB) { zktest.CheckChildren(t, srv, "/a", "c", "b") }, "children of /a: b, want b c; missing: c, too many: none"},
			{func(t testing.TB) { zktest.CheckChildren(t, srv, "/a") }, "children of /a: b, want none; missing: none, too many: b"},
			{func(t testing.TB) { zktest.CheckChildren(t, srv, "/c") }, "no node /c\n"},
			{func(t testing.TB) { zktest.CheckEphemerals(t, srv, id, "/e", "/f") }, fmt.Sprintf("ephemerals of session 0x%x: /e, want /e /f; missing: /f", id)},
			{func(t testing.TB) { zktest.CheckEphemerals(t, srv, 7) }, fmt.Sprintf("no session 0x7; those that live: 0x%x", id)},
			{func(t testing.TB) { zktest.CheckSessions(t, srv) }, fmt.Sprintf("sessions: 0x%x, want none", id)},
			{func(t testing.TB) { zktest.CheckWatched(t, srv, "/e", 1) }, fmt.Sprintf("0 watches on /e, want 1\nwatch on /a: data, session 0x%x\n", id)},
			{func(t testing.TB) { zktest.CheckTree(t, srv, "/a", map[string]string{"/a": "y", "/a/c": ""}) },
				`nodes of /a: missing: /a/c, too many: /a/b, different: /a has data "x", want "y"`},
		} {
			tb := &fakeTB{TB: t}
			c.check(tb)
			require.Len(t, tb.errors, 1, c.says)
			require.Contains(t, tb.errors[0], "zktest: "+c.says)
			require.Contains(t, tb.errors[0], "\ntree:\n/\n  /a \"x\"\n    /b\n")
			require.Contains(t, tb.errors[0], "\nlast requests:\n")
			require.Contains(t, tb.errors[0], " create /e ")
		}
	})
}

func TestWaitsEndWithTheStateTheyWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		start := time.Now()
		var conn *zk.Conn
		connected := make(chan struct{})
		go func() {
			time.Sleep(time.Second)
			conn = srv.Connect(t, 10*time.Second)
			close(connected)
		}()
		zktest.WaitSessions(t, srv, 1)
		require.Equal(t, time.Second, time.Since(start))
		<-connected
		mustCreate(t, conn, "/n", 0)
		go func() {
			time.Sleep(time.Second)
			_, _, _, err := conn.GetW("/n")
			require.NoError(t, err)
			time.Sleep(time.Second)
			srv.Set("/n", []byte("x"))
			time.Sleep(time.Second)
			srv.Delete("/n")
			time.Sleep(time.Second)
			srv.Disconnect(conn.SessionID())
		}()
		zktest.WaitWatches(t, srv, "/n", 1)
		require.Equal(t, 2*time.Second, time.Since(start))
		zktest.WaitData(t, srv, "/n", []byte("x"))
		require.Equal(t, 3*time.Second, time.Since(start))
		zktest.CheckWatched(t, srv, "/n", 0)
		zktest.WaitNoNode(t, srv, "/n")
		require.Equal(t, 4*time.Second, time.Since(start))
		srv.Wait(t, "the client is back", func() bool { return srv.TotalConnections() == 2 && srv.Sessions()[0].Connected })
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

func TestWaitingInVainFailsTheTestAfterAMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Load(map[string]string{"/n": "x"})
		for _, c := range []struct {
			wait func(testing.TB)
			says string
		}{
			{func(t testing.TB) { zktest.WaitNode(t, srv, "/nope") }, "no node /nope"},
			{func(t testing.TB) { zktest.WaitNoNode(t, srv, "/n") }, "there still is a node /n"},
			{func(t testing.TB) { zktest.WaitChildren(t, srv, "/", 7) }, "/ has 2 children, want 7"},
			{func(t testing.TB) { zktest.WaitChildren(t, srv, "/nope", 1) }, "no node /nope, want 1 children"},
			{func(t testing.TB) { zktest.WaitData(t, srv, "/n", nil) }, `node /n has data "x", want none`},
			{func(t testing.TB) { zktest.WaitData(t, srv, "/nope", nil) }, "no node /nope"},
			{func(t testing.TB) { zktest.WaitSessions(t, srv, 0) }, fmt.Sprintf("sessions 0x%x, want 0", conn.SessionID())},
			{func(t testing.TB) { zktest.WaitWatches(t, srv, "/n", 1) }, "0 watches on /n, want 1"},
			{func(t testing.TB) { srv.Wait(t, "the impossible", func() bool { return false }) }, "the impossible"},
		} {
			tb := &fakeTB{TB: t}
			start := time.Now()
			require.Panics(t, func() { c.wait(tb) })
			require.Equal(t, time.Minute, time.Since(start))
			require.Len(t, tb.errors, 1)
			require.Contains(t, tb.errors[0], "zktest: waited 1m0s in vain: "+c.says+"\ntree:\n/\n  /n \"x\"\nlast requests:\n")
		}
	})
}

func TestWaitingForSomethingOfAClosedServerFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start()
		time.AfterFunc(time.Second, srv.Close)
		start := time.Now()
		tb := &fakeTB{TB: t}
		require.Panics(t, func() { zktest.WaitNode(tb, srv, "/n") })
		require.Equal(t, time.Second, time.Since(start), "as soon as it is closed")
		require.Contains(t, tb.errors[0], "the server is closed, so this does not come any more: no node /n")
		require.Error(t, srv.WaitFor(t.Context(), func() bool { return false }))
		require.NoError(t, srv.WaitFor(t.Context(), func() bool { return true }))
		require.Equal(t, time.Second, time.Since(start))
	})
}
