package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// inBubble runs f in virtual time with a fresh server.
func inBubble(t *testing.T, cfg Config, f func(t *testing.T, s *Server)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, newServer(t, cfg))
	})
}

func TestStatCountsLikeTheRealServer(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second) // zxid 1
		start := time.Now().UnixMilli()
		require.Equal(t, int64(2), w.create("/a", []byte("xyz"), 0).zxid)
		time.Sleep(time.Second)
		w.create("/a/s-", nil, wire.FlagSequential)             // 3
		w.create("/a/s-", nil, wire.FlagSequential)             // 4
		w.do(wire.OpDelete, versionBody("/a/s-0000000000", -1)) // 5
		w.do(wire.OpSetData, setBody("/a", []byte("12345"), 0)) // 6
		require.Equal(t, wire.Stat{
			Czxid: 2, Mzxid: 6, Pzxid: 5, Ctime: start, Mtime: start + 1000,
			Version: 1, Cversion: 3, DataLength: 5, NumChildren: 1,
		}, w.stat("/a"))
		w.create("/a/s-", nil, wire.FlagSequential) // 7
		require.Equal(t, int32(3), mustNode(t, s, "/a").Sequence, "the sequence counts creates only")
		names, _ := s.Children("/a")
		require.Equal(t, []string{"s-0000000001", "s-0000000002"}, names)
		w.create("/e", nil, wire.FlagEphemeral)
		require.Equal(t, w.id, w.stat("/e").EphemeralOwner)
		w.do(wire.OpCreateContainer, createBody("/c", nil, wire.OpenACL(), 4))
		require.Zero(t, w.stat("/c").EphemeralOwner, "clients cannot tell a container")
		require.True(t, mustNode(t, s, "/c").Container)
	})
}

func mustNode(t *testing.T, s *Server, path string) tree.Info {
	t.Helper()
	n, ok := s.Node(path)
	require.True(t, ok, path)
	return n
}

func TestAFailedWriteCostsAZxidAndARejectedReadDoesNot(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for i, c := range []struct {
			r    reply
			code wire.Code
			zxid int64
		}{
			{w.create("/a/b", nil, 0), wire.CodeNoNode, 2},
			{w.create("/a", nil, 0), wire.CodeOK, 3},
			{w.create("/a", nil, 0), wire.CodeNodeExists, 4},
			{w.do(wire.OpSetData, setBody("/a", nil, 7)), wire.CodeBadVersion, 5},
			{w.do(wire.OpExists, watchBody("/b", false)), wire.CodeNoNode, 5},
			{w.create("/e", nil, wire.FlagEphemeral), wire.CodeOK, 6},
			{w.create("/e/k", nil, 0), wire.CodeNoChildrenEphemeral, 7},
			{w.create("/a/b", nil, 0), wire.CodeOK, 8},
			{w.do(wire.OpDelete, versionBody("/a", -1)), wire.CodeNotEmpty, 9},
			{w.do(wire.OpDelete, versionBody("/zookeeper", -1)), wire.CodeBadArguments, 10},
			{w.create("/a/", nil, 0), wire.CodeBadArguments, 11},
			{w.create("/t", nil, wire.FlagTTL), wire.CodeUnimplemented, 12},
			{w.do(wire.OpMulti, multiBody(part(wire.OpCheck, versionBody("/a", 3)))), wire.CodeOK, 13},
			{w.do(wire.OpCreate, func(e *wire.Encoder) { e.Int32(99) }), wire.CodeMarshalling, 14},
		} {
			require.Equal(t, c.code, c.r.code, "request %d", i)
			require.Equal(t, c.zxid, c.r.zxid, "request %d", i)
		}
	})
}

func TestAMultiIsAllOrNothingAndSaysWhichPartFailed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		open := wire.OpenACL()
		r := w.do(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/a", nil, open, 0)),
			part(wire.OpCreate, createBody("/a/s-", nil, open, wire.FlagSequential)),
			part(wire.OpCreate, createBody("/a/s-", nil, open, wire.FlagSequential)),
			part(wire.OpSetData, setBody("/a", []byte("x"), 0)),
			part(wire.OpCheck, versionBody("/a", 1)),
			part(wire.OpDelete, versionBody("/a/s-0000000000", 0)),
			part(wire.OpCreateContainer, createBody("/c", nil, open, wire.FlagContainer)),
		))
		require.Equal(t, wire.CodeOK, r.code)
		require.Equal(t, []wire.Code{0, 0, 0, 0, 0, 0, 0}, multiCodes(t, r.body))
		require.Equal(t, int64(2), w.stat("/a").Czxid, "one zxid for all")
		require.Equal(t, int64(2), w.stat("/a/s-0000000001").Czxid)

		before := s.Zxid()
		r = w.do(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/b", nil, open, 0)),
			part(wire.OpCreate, createBody("/a", nil, open, 0)),
			part(wire.OpSetData, setBody("/a", nil, -1)),
		))
		require.Equal(t, wire.CodeOK, r.code, "the header of a failed multi says ok")
		require.Equal(t, []wire.Code{wire.CodeOK, wire.CodeNodeExists, wire.CodeRuntimeInconsistency}, multiCodes(t, r.body))
		require.Equal(t, before+1, s.Zxid())
		_, ok := s.Node("/b")
		require.False(t, ok)
		require.Equal(t, int32(1), w.stat("/a").Version)
	})
}

func TestAFailedMultiGivesItsSequenceNumbersBack(t *testing.T) {
	inBubble(t, Config{CommitLatency: time.Millisecond}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		w.create("/q", nil, 0)
		open := wire.OpenACL()
		// In flight together: a create, a multi that fails after a create, another create.
		w.send(wire.OpCreate, createBody("/q/n-", nil, open, wire.FlagSequential))
		w.send(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/q/n-", nil, open, wire.FlagSequential)), part(wire.OpCheck, versionBody("/nope", 0))))
		w.send(wire.OpCreate, createBody("/q/n-", nil, open, wire.FlagSequential))
		require.Equal(t, "/q/n-0000000000", w.next().body.Text())
		require.Equal(t, []wire.Code{wire.CodeOK, wire.CodeNoNode}, multiCodes(t, w.next().body))
		require.Equal(t, "/q/n-0000000001", w.next().body.Text())
	})
}

func TestSequenceNumbersAtTheLimitDependOnWhatIsInFlight(t *testing.T) {
	inBubble(t, Config{CommitLatency: time.Millisecond}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		w.create("/q", nil, 0)
		require.True(t, s.SetSequence("/q", 2147483646))
		n := 0
		create := func() {
			n++
			w.send(wire.OpCreate, createBody(fmt.Sprintf("/q/%c-", 'a'+n), nil, wire.OpenACL(), wire.FlagSequential))
		}
		made := func() string { return w.next().body.Text() }

		create()
		require.Equal(t, "/q/b-2147483646", made())
		before := w.stat("/q").Pzxid
		create()
		require.Equal(t, "/q/c-2147483647", made())
		require.Equal(t, before, w.stat("/q").Pzxid, "the counter cannot be raised, and then pzxid is not either")
		create()
		require.Equal(t, "/q/d-2147483647", made(), "one after the other they repeat the limit")
		create()
		create()
		create()
		require.Equal(t, "/q/e-2147483647", made())
		require.Equal(t, "/q/f--2147483648", made(), "in flight together they go on")
		require.Equal(t, "/q/g--2147483647", made())
		create()
		require.Equal(t, "/q/h-2147483647", made(), "and fall back when it is quiet")
		w.send(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/q/y-", nil, wire.OpenACL(), wire.FlagSequential)),
			part(wire.OpCreate, createBody("/q/z-", nil, wire.OpenACL(), wire.FlagSequential))))
		require.Equal(t, []wire.Code{wire.CodeOK, wire.CodeOK}, multiCodes(t, w.next().body))
		names, _ := s.Children("/q")
		require.Contains(t, names, "y-2147483647")
		require.Contains(t, names, "z--2147483648", "parts of a multi are in flight together")
		w.send(wire.OpCreate, createBody("/q/h-", nil, wire.OpenACL(), wire.FlagSequential))
		require.Equal(t, wire.CodeNodeExists, w.next().code, "a repeated name collides")
	})
}

func TestEmptyContainersAreReapedAtTheInterval(t *testing.T) {
	inBubble(t, Config{ContainerInterval: 30 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.do(wire.OpCreateContainer, createBody("/used", nil, wire.OpenACL(), wire.FlagContainer))
		w.do(wire.OpCreateContainer, createBody("/unused", nil, wire.OpenACL(), wire.FlagContainer))
		w.create("/used/k", nil, 0)
		time.Sleep(31 * time.Second)
		w.do(wire.OpDelete, versionBody("/used/k", -1))
		time.Sleep(29*time.Second - time.Millisecond)
		require.Equal(t, 0, s.ChildCount("/used"))
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, -1, s.ChildCount("/used"))
		require.Equal(t, 0, s.ChildCount("/unused"), "one that never had a child stays")
	})
}
