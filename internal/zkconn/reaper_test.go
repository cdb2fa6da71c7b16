package zkconn_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

func reaped(t *testing.T, done <-chan struct{}, within time.Duration) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(within):
		t.Fatalf("not reaped within %v", within)
	}
}

func dir(t *testing.T, e *zkconn.Epoch, names ...string) {
	t.Helper()
	_, err := e.Create(t.Context(), "/d", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	for _, n := range names {
		make1(t, e, "/d/"+n)
	}
}

func TestTheReaperRemovesWhatItWasGivenAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv)
		dir(t, e, "_c_1-lock-0", "_c_1-lock-1", "_c_12-lock-2", "_c_2-lock-3", "_c_3-lock-4")
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_1-"}), time.Second)
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_2-lock-3"}), time.Second)
		zktest.CheckChildren(t, srv, "/d", "_c_12-lock-2", "_c_3-lock-4")
		require.Equal(t, 1, srv.RequestsBy(zktest.Sync), "another server than the one that took the create may lag")
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_2-lock-3"}), time.Second)
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/nowhere", Prefix: "x"}), time.Second)
	})
}

func TestTheReaperGoesOnThroughLostRequestsAndConnections(t *testing.T) {
	for _, fate := range []zktest.Fate{zktest.LoseRequest, zktest.LoseReply} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			_, e := open(t, srv)
			dir(t, e, "_c_1-lock-0")
			struck := 0
			srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if q.Op == zktest.Connect || q.Op == zktest.Ping || struck == 3 {
					return zktest.Verdict{}
				}
				struck++
				return zktest.Verdict{Fate: fate}
			})
			reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_1-"}), 5*timeout)
			require.Equal(t, 3, struck)
			require.NoError(t, e.Cause())
			zktest.CheckChildren(t, srv, "/d")
		})
	}
}

func TestTheReaperGoesOnWhileItIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv)
		dir(t, e, "_c_1-lock-0")
		srv.Intercept(zktest.On(zktest.Delete, "/d/*").Times(3).Error(zktest.CodeNoAuth))
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_1-"}), time.Second)
		zktest.CheckChildren(t, srv, "/d")
	})
}

func TestTheReaperWaitsForARequestUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv)
		dir(t, e)
		pending, unknown := make(chan struct{}), false
		done := e.Reap(zkconn.Orphan{Dir: "/d", Pending: pending, Outcome: func() (string, bool) { return "/d/_c_1-lock-0", unknown }})
		time.Sleep(timeout)
		make1(t, e, "/d/_c_1-lock-0")
		close(pending)
		reaped(t, done, time.Second)
		zktest.CheckChildren(t, srv, "/d")

		make1(t, e, "/d/_c_2-lock-1")
		none := make(chan struct{})
		close(none)
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_2-", Pending: none, Outcome: func() (string, bool) { return "", false }}), time.Second)
		zktest.CheckChildren(t, srv, "/d", "_c_2-lock-1")
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_2-", Pending: none, Outcome: func() (string, bool) { return "", true }}), time.Second)
		zktest.CheckChildren(t, srv, "/d")
	})
}

func TestTheReaperEndsWithItsEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c, e := open(t, srv)
		dir(t, e, "_c_1-lock-0")
		thaw := srv.Freeze()
		done := e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"})
		<-e.Over()
		reaped(t, done, time.Second)
		thaw()
		nextEpoch(t, c, e)
		time.Sleep(100 * time.Millisecond) // for the end of the first session on the servers
		zktest.CheckChildren(t, srv, "/d")
	})
}

func TestAnErrorWithoutANameIsOverlookedUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv)
		n := 0
		remove := srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op != zktest.Exists || n == 3 {
				return zktest.Verdict{}
			}
			n++
			return zktest.Verdict{Fate: zktest.Fail, Code: -5}
		})
		began := time.Now()
		_, there, err := e.Exists(t.Context(), "/a")
		require.NoError(t, err)
		require.False(t, there)
		require.Equal(t, 35*time.Millisecond, time.Since(began), "pauses of 5, 10 and 20 ms")
		remove()
		srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Exists {
				return zktest.Verdict{Fate: zktest.Fail, Code: -5}
			}
			return zktest.Verdict{}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := srv.RequestsBy(zktest.Exists)
		_, _, err = e.Exists(ctx, "/a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.InDelta(t, 60+7, srv.RequestsBy(zktest.Exists)-before, 2, "once in a second, after pauses that grow up to that")
	})
}

func TestAReadWaitsForAConnectionAndForNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv)
		allow := srv.Refuse()
		srv.Disconnect(e.ID())
		synctest.Wait()
		require.False(t, e.Linked())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, _, err := e.Get(ctx, "/")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		call := zkconn.Start(e, zkconn.DeleteNode("/x"))
		<-call.Done()
		_, err = call.Result()
		require.ErrorIs(t, err, zkconn.ErrNotSent, "what changes something is not kept for later")
		time.AfterFunc(time.Second, allow)
		_, _, err = e.Get(t.Context(), "/")
		require.NoError(t, err)
	})
}

// It has no caller, so the log is where it says so.
func TestTheReaperSaysThatServersDoNotTakeItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var log bytes.Buffer
		_, e := open(t, srv, func(cfg *zkconn.Config) { cfg.Log = logs.New(slog.New(slog.NewTextHandler(&log, nil))) })
		dir(t, e, "_c_1-lock-0")
		heal := srv.SetError(zktest.CodeThrottled, zktest.Delete)
		done := e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_1-lock-0"})
		time.Sleep(time.Minute)
		heal()
		reaped(t, done, 2*time.Second)
		require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
		require.Contains(t, log.String(), "throttled")
		zktest.CheckChildren(t, srv, "/d")
	})
}

// Whoever may create but not list finds nothing; asking again for as long as the session lives, once for
// every attempt, would not change that.
func TestTheReaperDoesNotLookForEverWhereItMayNotLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv)
		create := zk.WorldACL(zk.PermCreate | zk.PermDelete)
		_, err := e.Create(t.Context(), "/d", nil, zk.FlagContainer, create)
		require.NoError(t, err)
		make1(t, e, "/d/_c_1-lock-0")
		make1(t, e, "/d/_c_2-lock-1")
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Prefix: "_c_1-"}), time.Second)
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d", Node: "/d/_c_2-lock-1"}), time.Second)
		zktest.CheckChildren(t, srv, "/d", "_c_1-lock-0")
	})
}

func TestTheReaperRemovesNothingIfItWasToldNoName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv)
		dir(t, e, "_c_1-lock-0")
		pending := make(chan struct{})
		done := e.Reap(zkconn.Orphan{Dir: "/d", Pending: pending, Outcome: func() (string, bool) { return "", false }})
		time.Sleep(3 * timeout)
		close(pending)
		reaped(t, done, time.Second)
		reaped(t, e.Reap(zkconn.Orphan{Dir: "/d"}), time.Second)
		zktest.CheckChildren(t, srv, "/d", "_c_1-lock-0")
	})
}
