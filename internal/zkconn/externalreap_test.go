package zkconn_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

func unfinished(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
		t.Fatal("the reaper has ended")
	default:
	}
}

func TestCloseWaitsForWhatTheReaperWasGivenJustBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, timeout)
		_, first := open(t, srv)
		dir(t, first)
		srv.Delay(conn.SessionID(), 0, time.Millisecond)
		for range 50 {
			c := zkconn.External(zkconn.Config{Timeout: timeout}, conn)
			t.Cleanup(c.Close)
			e, err := c.Epoch(t.Context())
			require.NoError(t, err)
			make1(t, e, "/d/_c_1-lock-0")
			e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"})
			c.Close()
			zktest.CheckChildren(t, srv, "/d")
		}
	})
}

func TestTheReaperOfAnExternalConnectionOutlivesItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, c, e := external(t, srv)
		dir(t, e, "_c_1-lock-0", "_c_2-lock-1", "_c_3-lock-2")
		answered := make(chan struct{})
		allow := srv.Refuse()
		srv.Disconnect(conn.SessionID())
		all := []<-chan struct{}{
			e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"}),
			e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_2-"}),
			e.Reap(zkconn.Orphan{
				Dir: "/d", Prefix: "_c_3-", Pending: answered,
				Outcome: func() (string, bool) { return "", true },
			}),
		}
		began := time.Now()
		c.Close()
		require.Equal(t, 2*time.Second, time.Since(began))
		time.Sleep(timeout / 4)
		for _, done := range all {
			unfinished(t, done)
		}
		allow()
		for _, done := range all[:2] {
			reaped(t, done, 3*time.Second)
		}
		zktest.CheckChildren(t, srv, "/d", "_c_3-lock-2")
		unfinished(t, all[2])
		close(answered)
		reaped(t, all[2], 3*time.Second)
		zktest.CheckChildren(t, srv, "/d")
	})
}

// Nobody could remove anything through a closed connection, and its session's nodes go with it.
func TestTheReaperOfAnExternalConnectionEndsWithTheConnection(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Server, *zk.Conn) (undo func()){
		"a server that refuses the deletion": func(srv *zktest.Server, _ *zk.Conn) func() {
			return srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if q.Op == zktest.Delete {
					return zktest.Verdict{Fate: zktest.Fail, Code: -102} // no permission
				}
				return zktest.Verdict{}
			})
		},
		"no server": func(srv *zktest.Server, conn *zk.Conn) func() {
			allow := srv.Refuse()
			srv.Disconnect(conn.SessionID())
			return allow
		},
		"a frozen server": func(srv *zktest.Server, _ *zk.Conn) func() { return srv.Freeze() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithLeftovers())
				conn, c, e := external(t, srv)
				dir(t, e, "_c_1-lock-0")
				undo := fault(srv, conn)
				defer undo()
				done := e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"})
				c.Close()
				time.Sleep(time.Second)
				unfinished(t, done)
				ended := make(chan time.Time, 1)
				go func() {
					<-done
					ended <- time.Now()
				}()
				began := time.Now()
				conn.Close() // it may take a second
				require.Equal(t, began, <-ended)
			})
		})
	}
}

func TestTheReaperOfAnExternalConnectionGoesOnThroughLostOnesAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, c, e := external(t, srv)
		dir(t, e, "_c_1-lock-0")
		var cuts atomic.Int32
		remove := srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op != zktest.Delete {
				return zktest.Verdict{}
			}
			cuts.Add(1)
			return zktest.Verdict{Fate: zktest.LoseRequest} // and the connection with it
		})
		done := e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"})
		c.Close()
		time.Sleep(time.Minute)
		require.Greater(t, cuts.Load(), int32(20))
		unfinished(t, done)
		remove()
		reaped(t, done, 3*time.Second)
		zktest.CheckChildren(t, srv, "/d")
		require.Equal(t, e.ID(), conn.SessionID())
	})
}

// Whoever may create but not list finds nothing; asking again for as long as the session lives, once for
// every attempt, would not change that.
func TestTheReaperDoesNotLookForEverWhereItMayNotLook(t *testing.T) {
	for name, epoch := range map[string]func(*testing.T, *zktest.Server) *zkconn.Epoch{
		"own connection": func(t *testing.T, srv *zktest.Server) *zkconn.Epoch {
			_, e := open(t, srv)
			return e
		},
		"external": func(t *testing.T, srv *zktest.Server) *zkconn.Epoch {
			_, _, e := external(t, srv)
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				e := epoch(t, srv)
				create := zk.WorldACL(zk.PermCreate | zk.PermDelete)
				require.NoError(t, e.CreateContainer(t.Context(), "/d", nil, create))
				make1(t, e, "/d/_c_1-lock-0")
				make1(t, e, "/d/_c_2-lock-1")
				reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_1-"}), time.Second)
				reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_2-lock-1"}), time.Second)
				zktest.CheckChildren(t, srv, "/d", "_c_1-lock-0")
			})
		})
	}
}

// The reaper also looks while the request that makes the node is pending.
func TestTheReaperRemovesNothingIfItWasToldNoName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, c, e := external(t, srv)
		dir(t, e, "_c_1-lock-0")
		pending := make(chan struct{})
		done := e.Reap(zkconn.Orphan{Dir: "/d", Pending: pending, Outcome: func() (string, bool) { return "", false }})
		time.Sleep(3 * timeout)
		close(pending)
		reaped(t, done, time.Second)
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d"}), time.Second)
		zktest.CheckChildren(t, srv, "/d", "_c_1-lock-0")
		c.Close()
		conn.Close()
	})
}

// The client library never gives up a request whose answer was lost on a living connection.
func TestTheReaperOfAnExternalConnectionLooksWhileTheRequestIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, _, e := external(t, srv)
		dir(t, e, "_c_1-lock-0", "_c_2-lock-1")
		pending := make(chan struct{})
		done := e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_1-", Pending: pending, Outcome: func() (string, bool) { return "", true }})
		time.Sleep(2 * timeout)
		zktest.CheckChildren(t, srv, "/d", "_c_2-lock-1")
		close(pending)
		reaped(t, done, time.Second)
	})
}

// A request of the lost connection is applied when its server hears of the session again, as on a connection of our own.
func TestWhatAnExternalConnectionMayYetMakeIsLookedForOnTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, _, e := external(t, srv)
		dir(t, e)
		e.AmbiguousCreate("/d", "_c_1-", e.Connection())
		make1(t, e, "/d/_c_1-lock-0")
		make1(t, e, "/d/_c_2-lock-1")
		allow := unreachable(srv, conn)
		for e.Linked() {
			time.Sleep(time.Millisecond)
		}
		allow()
		time.Sleep(timeout / 2)
		zktest.CheckChildren(t, srv, "/d", "_c_2-lock-1")
	})
}
