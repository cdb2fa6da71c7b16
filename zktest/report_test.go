package zktest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestATreeIsGoodToReadWhateverIsInIt(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	srv.Create("/binary", []byte{0, 1, 0xfe}, 0, 0)
	srv.Create("/blob", make([]byte, 1000), 0, 0)
	srv.Create("/long", []byte(strings.Repeat("ä", 100)), 0, 0)
	srv.Create("/private", nil, 0, 0)
	srv.SetACL("/private", zk.ACL{Perms: zk.PermRead | zk.PermAdmin, Scheme: "digest", ID: "bob:x"}, zk.ACL{Perms: zk.PermCreate, Scheme: "world", ID: "anyone"})
	srv.Create("/text", []byte("grüße\n\"ja\""), 0, 0)
	srv.Create("/with space", nil, 0, 0)
	require.Equal(t, strings.Join([]string{
		`/`,
		`  /binary 3 bytes 0001fe`,
		`  /blob 1000 bytes 00000000000000000000000000000000...`,
		`  /long "` + strings.Repeat("ä", 30) + `"... (200 bytes)`,
		`  /private acl digest:bob:x:ra,world:anyone:c`,
		`  /text "grüße\n\"ja\""`,
		`  /with space`,
		``,
	}, "\n"), srv.Tree())
}

func TestADumpHasEverythingThereIsToSee(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		mustCreate(t, conn, "/dir", 0)
		mustCreate(t, conn, "/dir/e", zk.FlagEphemeral)
		_, _, _, err := conn.ChildrenW("/dir")
		require.NoError(t, err)
		time.Sleep(time.Second)
		srv.Disconnect(conn.SessionID())
		time.Sleep(time.Minute)
		dump := srv.Dump()
		for _, want := range []string{
			"server: 00:01:01.000, zxid 0x3, 1 connections (2 in all), 3 requests, 0 watch events\n",
			"tree:\n/\n  /dir\n    /e ephemeral 0x", fmt.Sprintf("session 0x%x: connected, timeout 10s, ", conn.SessionID()), "  ephemeral /dir/e\n",
			fmt.Sprintf("watch on /dir: children, session 0x%x\n", conn.SessionID()), "last requests:\n", "create /dir/e zxid=0x3 code=0\n",
		} {
			require.Contains(t, dump, want)
		}
		require.NotContains(t, dump, "ping")
	})
}

// crowd makes many nodes with long names, and as many requests.
func crowd(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
	t.Helper()
	for i := range 300 {
		mustCreate(t, conn, fmt.Sprintf("/%s%d", strings.Repeat("x", 2000), i), zk.FlagEphemeral)
	}
	ops := make([]any, 500)
	for i := range ops {
		ops[i] = &zk.CreateRequest{Path: fmt.Sprint("/", strings.Repeat("y", 1000), i), Data: make([]byte, 100), Acl: open}
	}
	_, err := conn.Multi(ops...)
	require.NoError(t, err)
}

func TestFailureMessagesStayShort(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		crowd(t, srv, conn)
		const most = 64 << 10
		tb := &fakeTB{TB: t}
		for name, fail := range map[string]func(){
			"CheckNode":       func() { zktest.CheckNode(tb, srv, "/nope", nil) },
			"CheckData":       func() { zktest.CheckNode(tb, srv, "/", make([]byte, 1<<20)) },
			"CheckText":       func() { zktest.CheckNode(tb, srv, "/", []byte(strings.Repeat("z", 1<<20))) },
			"CheckChildren":   func() { zktest.CheckChildren(tb, srv, "/") },
			"CheckEphemerals": func() { zktest.CheckEphemerals(tb, srv, conn.SessionID()) },
			"CheckTree":       func() { zktest.CheckTree(tb, srv, "/", nil) },
			"CheckWatches":    func() { zktest.CheckWatched(tb, srv, "/", 1) },
			"WaitNode":        func() { require.Panics(t, func() { zktest.WaitNode(tb, srv, "/nope") }) },
		} {
			tb.errors = nil
			fail()
			require.Len(t, tb.errors, 1, name)
			require.Less(t, len(tb.errors[0]), most, name)
			require.Contains(t, tb.errors[0], "... and 741 more nodes\n", name)
			require.Contains(t, tb.errors[0], "last requests:\n", name)
			_, requests, _ := strings.Cut(tb.errors[0], "last requests:\n")
			require.Equal(t, 20, strings.Count(requests, "\n"), name)
		}
	}, zktest.WithLeftovers())
}

func TestLeftoversStayShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Run(tb)
		conn := srv.Connect(t, 10*time.Second)
		crowd(t, srv, conn)
		tb.finish()
		require.Len(t, tb.errors, 1)
		require.Less(t, len(tb.errors[0]), 64<<10)
		require.Contains(t, tb.errors[0], "... and 290 more ephemerals\n")
	})
}

func TestPathsThatSpoilAMessageAreQuoted(t *testing.T) {
	r := zktest.Request{Op: zktest.Exists, Path: "/a\nb", Paths: []string{"/a\nb"}}
	require.Contains(t, r.String(), `exists "/a\nb"`)
	srv := zktest.Run(t)
	tb := &fakeTB{TB: t}
	zktest.CheckNode(tb, srv, "/\x00", nil)
	require.Contains(t, tb.errors[0], `no node "/\x00"`)
}

func TestALongMultiShowsItsFirstPaths(t *testing.T) {
	r := zktest.Request{Op: zktest.Multi}
	for i := range 100 {
		r.Paths, r.Ops = append(r.Paths, fmt.Sprint("/n", i)), append(r.Ops, zktest.Create)
	}
	require.Contains(t, r.String(), "multi create:/n0 create:/n1 ")
	require.Contains(t, r.String(), "create:/n7 and 92 more zxid=")
}

func TestVerboseTellsRequestsSessionsAndConnections(t *testing.T) {
	var lines []string
	record := func(args ...any) { lines = append(lines, fmt.Sprint(args...)) }
	var id int64
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithVerbose(record), zktest.WithTick(time.Second))
		conn := srv.Connect(t, 10*time.Second)
		id = conn.SessionID()
		mustCreate(t, conn, "/n", 0)
		srv.Disconnect(id)
		srv.Wait(t, "the client is back", func() bool { return srv.Sessions()[0].Connected })
		heal := srv.Partition(id)
		time.Sleep(time.Minute)
		heal()
		synctest.Wait()
	})
	said := strings.Join(lines, "\n")
	next := 0
	for _, want := range []string{
		"00:00:00.000 connection from pipe",
		fmt.Sprintf("00:00:00.000 0x%x #0 connect zxid=0x1 code=0", id),
		fmt.Sprintf("00:00:00.000 session 0x%x opened, timeout 10s", id),
		"create /n zxid=0x2 code=0",
		fmt.Sprintf("00:00:00.000 connection from pipe closed, session 0x%x", id),
		fmt.Sprintf("00:00:00.000 session 0x%x resumed, timeout 10s", id),
		fmt.Sprintf("00:00:11.000 session 0x%x expired", id),
	} {
		i := strings.Index(said[next:], want)
		require.GreaterOrEqual(t, i, 0, "%q in\n%s", want, said[next:])
		next += i + len(want)
	}
}
