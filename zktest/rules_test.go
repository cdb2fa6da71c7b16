package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestALostReplyLeavesTheNodeBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Create("/locks", nil, 0, 0)
		in := srv.Intercept(zktest.On(zktest.Create, "/locks/**").Nth(2).LoseReply())
		for i, want := range []error{nil, zk.ErrConnectionClosed, nil} {
			_, err := conn.Create("/locks/a-", nil, zk.FlagSequence, open)
			require.Equal(t, want, err, "create %d", i)
		}
		require.Equal(t, 1, in.Fired())
		require.Equal(t, 3, in.Matched())
		require.Len(t, srv.Children("/locks"), 3)
		require.Equal(t, 3, srv.Requests())
	})
}

func TestALostRequestIsNotApplied(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Intercept(zktest.On(zktest.Create, "/n").Times(1).LoseRequest())
		_, err := conn.Create("/n", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		zktest.CheckNoNode(t, srv, "/n")
		mustCreate(t, conn, "/n", 0)
		log := srv.Log()
		var fates []string
		for _, q := range log {
			if q.Op == zktest.Create {
				fates = append(fates, q.Fate)
			}
		}
		require.Equal(t, []string{"request lost", ""}, fates)
	})
}

func TestADuplicateIsAppliedTwiceAndAnsweredOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Create("/q", nil, 0, 0)
		in := srv.Intercept(zktest.On(zktest.Create, "/q/*").Duplicate())
		require.Equal(t, "/q/n-0000000001", mustCreate(t, conn, "/q/n-", zk.FlagSequence), "the last answer")
		zktest.CheckChildren(t, srv, "/q", "n-0000000000", "n-0000000001")
		in.Remove()
		require.Equal(t, "/q/n-0000000002", mustCreate(t, conn, "/q/n-", zk.FlagSequence))
		require.Equal(t, 2, srv.Requests(), "a duplicate is one request")
	})
}

func TestAnErrorIsAnsweredAndNothingApplied(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		zxid := srv.Zxid()
		srv.Intercept(zktest.On(zktest.Any, "/n").Nth(1).Times(2).Error(zktest.CodeNodeExists))
		_, err := conn.Create("/n", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		_, _, err = conn.Get("/n")
		require.ErrorIs(t, err, zk.ErrNodeExists)
		require.Equal(t, zxid, srv.Zxid())
		mustCreate(t, conn, "/n", 0)
	})
}

func TestADelayedRequestWaitsAndHeartbeatsDoNot(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Intercept(zktest.On(zktest.Create, "/slow").Delay(time.Minute))
		start := time.Now()
		slow := createAsync(conn, "/slow", 0)
		require.True(t, pending(slow))
		behind := createAsync(conn, "/behind", 0)
		require.NoError(t, <-behind)
		require.NoError(t, <-slow)
		require.Equal(t, time.Minute, time.Since(start), "six times the session timeout")
		require.Less(t, node(t, srv, "/slow").Stat.Czxid, node(t, srv, "/behind").Stat.Czxid)
	})
}

func TestHeldRequestsRunInTheOrderOfRelease(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		other := srv.Connect(t, 10*time.Second)
		in := srv.Intercept(zktest.On(zktest.Create, "/held-*").Hold())
		a := createAsync(conn, "/held-a", 0)
		require.NoError(t, in.WaitHeld(context.Background()))
		b := createAsync(other, "/held-b", 0)
		require.True(t, pending(b))
		require.Equal(t, 2, in.Held())
		mustCreate(t, other2(t, srv), "/free", 0)
		require.True(t, in.ReleaseOne())
		require.NoError(t, <-a)
		require.True(t, pending(b))
		in.Release()
		require.NoError(t, <-b)
		require.False(t, in.ReleaseOne())
		require.Zero(t, in.Held())
	})
}

func other2(t *testing.T, srv *zktest.Server) *zk.Conn { return srv.Connect(t, 10*time.Second) }

func TestAHeldRequestDiesWithItsServer(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		in := srv.Intercept(zktest.On(zktest.Create, "/late").Hold())
		done := createAsync(conn, "/late", 0)
		require.NoError(t, in.WaitHeld(context.Background()))
		srv.Restart()
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
		in.Release()
		time.Sleep(time.Second)
		zktest.CheckNoNode(t, srv, "/late")
	})
}

func TestHoldCombinesWithAnotherVerdict(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		in := srv.Intercept(zktest.On(zktest.Create, "/n").LoseReply().Hold())
		done := createAsync(conn, "/n", 0)
		require.NoError(t, in.WaitHeld(context.Background()))
		zktest.CheckNoNode(t, srv, "/n")
		in.Release()
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
		zktest.CheckNode(t, srv, "/n", nil)
	})
}

func TestWaitHeldEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		in := srv.Intercept(zktest.On(zktest.Create, "/n").Hold().Maybe())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, in.WaitHeld(ctx), context.DeadlineExceeded)
	})
}

func TestARuleCanBeForOneSession(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		other := srv.Connect(t, 10*time.Second)
		srv.Intercept(zktest.On(zktest.Create, "**").Of(other.SessionID()).Error(zktest.CodeNoAuth))
		mustCreate(t, conn, "/a", 0)
		_, err := other.Create("/b", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrNoAuth)
	})
}

func TestAMultiMatchesByItsParts(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Create("/p", nil, 0, 0)
		creates := srv.Intercept(zktest.On(zktest.Create, "/p/*"))
		sets := srv.Intercept(zktest.On(zktest.SetData, "/p/*"))
		deletes := srv.Intercept(zktest.On(zktest.Delete, "/p"))
		multis := srv.Intercept(zktest.On(zktest.Multi, "/p"))
		anys := srv.Intercept(zktest.On(zktest.Any, "/p/a-"))
		_, err := conn.Multi(
			&zk.CreateRequest{Path: "/p/a-", Acl: open, Flags: zk.FlagSequence}, &zk.SetDataRequest{Path: "/p", Version: -1})
		require.NoError(t, err)
		require.Equal(t, []int{1, 0, 0, 1, 1},
			[]int{creates.Fired(), sets.Fired(), deletes.Fired(), multis.Fired(), anys.Fired()})
		require.Equal(t, 1, srv.RequestsBy(zktest.Multi))
		require.Zero(t, srv.RequestsBy(zktest.Create))
	})
}

func TestPatterns(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		for _, c := range []struct {
			pattern, path string
			want          int
		}{
			{"/a", "/a", 1}, {"/a", "/a/b", 0}, {"/a", "/ab", 0}, {"/*", "/a", 1}, {"/*", "/a/b", 0}, {"/a*c", "/abbc", 1},
			{"/a*c", "/abbd", 0}, {"/*-lock-*", "/x-lock-1", 1}, {"/a/**", "/a/b/c", 1}, {"/a/**", "/a/b", 1}, {"/a/**", "/a", 0},
			{"/**", "/a", 1}, {"**", "/a", 1}, {"", "/a", 1}, {"/*/b", "/a/b", 1}, {"/*/b", "/a/c", 0}, {"/a/*/c", "/a/b/c/d", 0},
			{"/a**", "/abc", 1},
		} {
			in := srv.Intercept(zktest.On(zktest.Exists, c.pattern))
			_, _, err := conn.Exists(c.path)
			require.NoError(t, err)
			require.Equal(t, c.want, in.Fired(), "%s against %s", c.pattern, c.path)
			in.Remove()
		}
	})
}

func TestAnyLeavesOutWhatClientsSendOnTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		anys := srv.Intercept(zktest.On(zktest.Any, "**"))
		pings := srv.Intercept(zktest.On(zktest.Ping, "**"))
		connects := srv.Intercept(zktest.On(zktest.Connect, "**"))
		watches := srv.Intercept(zktest.On(zktest.SetWatches, "/n"))
		srv.Create("/n", nil, 0, 0)
		_, _, _, err := conn.ExistsW("/n")
		require.NoError(t, err)
		require.NoError(t, conn.AddAuth("digest", []byte("u:p")))
		time.Sleep(time.Minute)
		srv.Disconnect(conn.SessionID())
		time.Sleep(time.Second)
		require.Equal(t, 1, anys.Fired())
		require.Equal(t, 1, srv.Requests())
		require.Positive(t, pings.Fired())
		require.Equal(t, 1, connects.Fired())
		require.Equal(t, 1, watches.Fired())
		require.Equal(t, 2, srv.RequestsBy(zktest.SetAuth), "sent again on the new connection")
		srv.Delete("/n")
		synctest.Wait()
	})
}

func TestARefusedConnectLooksLikeAnExpiredSession(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		id := conn.SessionID()
		srv.Intercept(zktest.On(zktest.Connect, "**").Times(1).Error(zktest.CodeSessionExpired))
		srv.Disconnect(id)
		time.Sleep(time.Second)
		require.NotEqual(t, id, conn.SessionID())
		srv.Expire(id) // the server has not forgotten it
	})
}

func TestInterceptFuncDecidesAndRulesComeInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		release := make(chan struct{})
		remove := srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			switch q.Path {
			case "/lost":
				return zktest.Verdict{Fate: zktest.LoseReply}
			case "/slow":
				return zktest.Verdict{Delay: time.Second}
			case "/parked":
				return zktest.Verdict{Fate: zktest.Fail, Code: -101, Hold: release}
			}
			return zktest.Verdict{}
		})
		second := srv.Intercept(zktest.On(zktest.Create, "**").Error(zktest.CodeQuotaExceeded))
		_, err := conn.Create("/lost", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		start := time.Now()
		mustCreate(t, conn, "/slow", 0)
		require.Equal(t, time.Second, time.Since(start))
		parked := createAsync(conn, "/parked", 0)
		require.True(t, pending(parked))
		close(release)
		require.ErrorIs(t, <-parked, zk.ErrNoNode)
		require.Equal(t, 0, second.Fired())
		require.Equal(t, 3, second.Matched())
		remove()
		_, err = conn.Create("/n", nil, 0, open)
		require.ErrorContains(t, err, "-125")
	})
}
