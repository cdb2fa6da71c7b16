package zktest_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// fakeTB records what a server reports to its test.
type fakeTB struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic("fatal")
}

// finish runs the cleanups as the testing package does.
func (f *fakeTB) finish() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
	f.cleanups = nil
}

func TestLeftoversFailTheTestAndSayWhatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Run(tb)
		conn := srv.Connect(t, 10*time.Second)
		mustCreate(t, conn, "/dir", 0)
		mustCreate(t, conn, "/dir/e", zk.FlagEphemeral)
		_, _, _, err := conn.ChildrenW("/dir")
		require.NoError(t, err)
		tb.finish()
		require.Len(t, tb.errors, 1)
		for _, want := range []string{
			fmt.Sprintf("session 0x%x", conn.SessionID()), "ephemeral /dir/e", "watch on /dir: children, session 0x", "  /dir\n", "create /dir/e", "getChildren /dir",
		} {
			require.Contains(t, tb.errors[0], want)
		}
	})
}

func TestACleanTestLeavesNothing(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{"clean": nil, "lenient": {zktest.WithLeftovers()}} {
		synctest.Test(t, func(t *testing.T) {
			tb := &fakeTB{TB: t}
			srv := zktest.Run(tb, opts...)
			client := &fakeTB{TB: t}
			conn := srv.Connect(client, 10*time.Second)
			mustCreate(t, conn, "/e", zk.FlagEphemeral)
			if name == "clean" {
				client.finish()
			}
			tb.finish()
			require.Empty(t, tb.errors, name)
			client.finish()
		})
	}
}

func TestTheServerCanBeLookedIntoAndChangedWithoutAClient(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		require.Equal(t, "/a", srv.Create("/a", []byte("hi"), 0, 0))
		require.Equal(t, "/a/s-0000000000", srv.Create("/a/s-", []byte{0, 1}, zk.FlagSequence, 0))
		srv.Create("/a/e", nil, zk.FlagEphemeral, conn.SessionID())
		srv.Create("/c", nil, zk.FlagContainer, 0)
		srv.Set("/a", []byte("ho"))
		require.Equal(t, strings.Join([]string{
			"/", `  /a "ho"`, fmt.Sprintf("    /e ephemeral 0x%x", conn.SessionID()), "    /s-0000000000 2 bytes 0001", "  /c container", "",
		}, "\n"), srv.Tree())
		n := node(t, srv, "/a")
		require.Equal(t, "ho", string(n.Data))
		require.Equal(t, open, n.ACL)
		_, st, err := conn.Get("/a")
		require.NoError(t, err)
		require.Equal(t, *st, n.Stat)
		require.Equal(t, []string{"e", "s-0000000000"}, srv.Children("/a"))
		require.Nil(t, srv.Children("/nope"))
		_, ok := srv.Node("/nope")
		require.False(t, ok)

		_, _, events, err := conn.ExistsW("/a/e")
		require.NoError(t, err)
		s := srv.Sessions()[0]
		require.Equal(t, conn.SessionID(), s.ID)
		require.Equal(t, 10*time.Second, s.Timeout)
		require.Equal(t, []string{"/a/e"}, s.Ephemerals)
		require.Equal(t, 1, s.Watches)
		require.True(t, s.Connected)
		require.Equal(t, time.Now(), s.LastHeard)
		require.Equal(t, 1, srv.Watches())
		require.Equal(t, 1, srv.WatchesOn("/a/e"))
		require.Equal(t, []string{"/a/e"}, srv.WatchedPaths())
		require.Equal(t, []zktest.Watch{{Path: "/a/e", Session: conn.SessionID(), Kind: zktest.DataWatch}}, srv.WatchList())
		srv.Delete("/a/e")
		require.Equal(t, zk.EventNodeDeleted, (<-events).Type)
		require.Equal(t, 1, srv.Notifications())
	})
}

func TestTheLogHasEveryRequestWithItsOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		mustCreate(t, conn, "/q", 0)
		mustCreate(t, conn, "/q/n-", zk.FlagSequence)
		_, err := conn.Create("/q", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		_, err = conn.Multi(&zk.CreateRequest{Path: "/x", Acl: open}, &zk.CheckVersionRequest{Path: "/q", Version: 9})
		require.Error(t, err)
		_, _, err = conn.Get("/q")
		require.NoError(t, err)
		var lines []string
		for _, q := range srv.Log() {
			require.Equal(t, time.Now(), q.Time)
			lines = append(lines, strings.SplitN(q.String(), "#", 2)[1])
		}
		require.Equal(t, []string{
			"0 connect zxid=0x1 code=0",
			"1 create /q zxid=0x2 code=0",
			"2 create /q/n- -> /q/n-0000000000 zxid=0x3 code=0",
			"3 create /q zxid=0x4 code=-110 nodeExists",
			"4 multi create:/x check:/q zxid=0x5 code=-103 badVersion",
			"5 getData /q zxid=0x0 code=0",
		}, lines)
		require.Equal(t, 5, srv.Requests())
		require.Equal(t, 3, srv.RequestsBy(zktest.Create))
		require.Equal(t, 1, srv.RequestsBy(zktest.Connect))
	})
}

func TestWaitingForAStateNeedsNoPolling(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		start := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			mustCreate(t, conn, "/q", 0)
			for range 3 {
				time.Sleep(5 * time.Second)
				mustCreate(t, conn, "/q/n-", zk.FlagSequence|zk.FlagEphemeral)
			}
		}()
		zktest.WaitNode(t, srv, "/q")
		require.Equal(t, 5*time.Second, time.Since(start))
		zktest.WaitChildren(t, srv, "/q", 2)
		require.Equal(t, 15*time.Second, time.Since(start))
		zktest.WaitChildren(t, srv, "/q", 3)
		srv.Expire(conn.SessionID())
		zktest.WaitChildren(t, srv, "/q", 0)
		go srv.Delete("/q")
		zktest.WaitChildren(t, srv, "/q", -1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, srv.WaitFor(ctx, func() bool { return false }), context.DeadlineExceeded)
	})
}

func TestHooksSeeEachTransactionAtItsInstant(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		start := time.Now()
		var txns []string
		srv.OnCommit(func(x zktest.Txn) {
			line := fmt.Sprintf("%v %v %d", x.Time.Sub(start), x.Op, x.Code)
			for _, c := range x.Changes {
				line += fmt.Sprintf(" %d:%s", c.Kind, c.Path)
				require.Equal(t, c.Kind != zktest.Created || c.Czxid == x.Zxid, true)
			}
			txns = append(txns, line)
		})
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		time.Sleep(time.Second)
		_, err := conn.Multi(&zk.SetDataRequest{Path: "/e", Version: -1}, &zk.DeleteRequest{Path: "/e", Version: -1})
		require.NoError(t, err)
		require.ErrorIs(t, conn.Delete("/e", -1), zk.ErrNoNode)
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		_, err = conn.SetACL("/e", open, -1)
		require.NoError(t, err)
		srv.Expire(conn.SessionID())
		require.Equal(t, []string{
			"1ms create 0 0:/e", "1.002s multi 0 2:/e 1:/e", "1.003s delete -101", "1.004s create 0 0:/e", "1.005s setACL 0 3:/e",
			"1.006s closeSession 0 1:/e",
		}, txns)
	}, zktest.WithCommitLatency(time.Millisecond))
}

func TestAtTheSequenceLimitConcurrentCreatesGoNegative(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		mustCreate(t, conn, "/q", 0)
		srv.SetSequence("/q", math.MaxInt32)
		require.Equal(t, "/q/a-2147483647", mustCreate(t, conn, "/q/a-", zk.FlagSequence))
		first, second := createAsync(conn, "/q/b-", zk.FlagSequence), createAsync(conn, "/q/b-", zk.FlagSequence)
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		zktest.CheckChildren(t, srv, "/q", "a-2147483647", "b-2147483647", "b--2147483648")
		_, err := conn.Create("/q/a-", nil, zk.FlagSequence, open)
		require.ErrorIs(t, err, zk.ErrNodeExists, "a quiet repeat of the same name collides")
	}, zktest.WithCommitLatency(time.Millisecond))
}
