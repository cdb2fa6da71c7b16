package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestRemoveWatchesTakesTheKindsThatItNamesAndTellsNobody(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b, c := join(t, s, 10*time.Second), join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		c.create("/n", nil, 0)
		for _, w := range []*rawClient{a, b} {
			w.do(wire.OpGetData, watchBody("/n", true))
			w.do(wire.OpGetChildren, watchBody("/n", true))
		}
		require.Equal(t, wire.CodeOK, a.do(wire.OpRemoveWatches, kindBody("/n", watch.WatchesOnChildren)).code)
		require.Equal(t, wire.CodeNoWatcher, a.do(wire.OpRemoveWatches, kindBody("/n", watch.WatchesOnChildren)).code)
		require.Equal(t, 3, s.WatchesOn("/n"))
		require.Equal(t, wire.CodeOK, a.do(wire.OpRemoveWatches, kindBody("/n", watch.WatchesOfAnyKind)).code, "one of the kinds is enough")
		require.Equal(t, wire.CodeNoWatcher, a.do(wire.OpRemoveWatches, kindBody("/n", watch.WatchesOfAnyKind)).code)
		require.Equal(t, 2, s.WatchesOn("/n"))
		c.do(wire.OpSetData, setBody("/n", nil, -1))
		c.create("/n/k", nil, 0)
		require.Equal(t, []string{"changed /n", "children /n"}, b.events(), "the other client's watches are as they were")
		require.Empty(t, a.events())
	})
}

func TestAPersistentWatchCanBeRemovedByHalf(t *testing.T) {
	for _, c := range []struct {
		mode, kind int32
		want       []string
	}{
		{modePersistent, watch.WatchesOnChildren, []string{"changed /n", "changed /n", "deleted /n", "created /n"}},
		{modePersistent, watch.WatchesOnData, []string{"children /n", "children /n", "deleted /n"}},
		{modePersistent, watch.WatchesOfAnyKind, []string{}},
		{modeRecursive, watch.WatchesOnData, []string{"deleted /n/k/g", "deleted /n/k", "deleted /n"}},
		{modeRecursive, watch.WatchesOfAnyKind, []string{}},
	} {
		inBubble(t, Config{}, func(t *testing.T, s *Server) {
			a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
			b.create("/n", nil, 0)
			a.do(wire.OpAddWatch, kindBody("/n", c.mode))
			require.Equal(t, wire.CodeOK, a.do(wire.OpRemoveWatches, kindBody("/n", c.kind)).code)
			require.Equal(t, c.want, tour(b, a), "mode %d without kind %d", c.mode, c.kind)
		})
	}
}

func TestAnExistsWatchOnAMissingNodeIsADataWatch(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a := join(t, s, 10*time.Second)
		a.do(wire.OpExists, watchBody("/gone", true))
		require.Equal(t, wire.CodeNoWatcher, a.do(wire.OpCheckWatches, kindBody("/gone", watch.WatchesOnChildren)).code)
		require.Equal(t, wire.CodeOK, a.do(wire.OpCheckWatches, kindBody("/gone", watch.WatchesOnData)).code)
		require.Equal(t, wire.CodeOK, a.do(wire.OpCheckWatches, kindBody("/gone", watch.WatchesOfAnyKind)).code)
		require.Equal(t, wire.CodeNoWatcher, a.do(wire.OpRemoveWatches, kindBody("/gone", watch.WatchesOnChildren)).code)
		require.Equal(t, wire.CodeOK, a.do(wire.OpRemoveWatches, kindBody("/gone", watch.WatchesOnData)).code)
		require.Zero(t, s.Watches())
	})
}

func TestCheckWatchesDoesNotTellWhoseWatchItFinds(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		b.do(wire.OpExists, watchBody("/n", true))
		require.Equal(t, wire.CodeOK, a.do(wire.OpCheckWatches, kindBody("/n", watch.WatchesOnData)).code, "as a 3.8 server does")
		require.Equal(t, wire.CodeNoWatcher, a.do(wire.OpRemoveWatches, kindBody("/n", watch.WatchesOnData)).code)
		a.do(wire.OpAddWatch, kindBody("/", modeRecursive))
		require.Equal(t, wire.CodeNoWatcher, a.do(wire.OpCheckWatches, kindBody("/below", watch.WatchesOfAnyKind)).code,
			"a recursive watch is on its own path only")
	})
}

func TestUnknownModesAndKindsAreMarshallingErrorsAndPathsAreNotLookedAt(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for _, op := range []wire.Op{wire.OpAddWatch, wire.OpCheckWatches, wire.OpRemoveWatches} {
			for _, kind := range []int32{-1, 4, 1 << 30, -1 << 31} {
				r := w.do(op, kindBody("/n", kind))
				require.Equal(t, wire.CodeMarshalling, r.code, "%v %d", op, kind)
				require.Empty(t, r.body.Rest())
			}
			require.Equal(t, wire.CodeMarshalling, w.do(op, pathBody("/n")).code, "%v without a kind", op)
			require.Equal(t, wire.CodeMarshalling, w.do(op, nil).code)
		}
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpAddWatch, kindBody("/n", 2)).code)
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpRemoveWatches, kindBody("/n", 0)).code)
		require.Zero(t, s.Watches())
		for _, p := range []string{"", "abc", "a/b", "/a/", "//", "/./x", "\x00"} {
			require.Equal(t, wire.CodeOK, w.do(wire.OpAddWatch, kindBody(p, modePersistent)).code, "%q", p)
			require.Equal(t, 2, s.Watches(), "%q", p)
			require.Equal(t, wire.CodeOK, w.do(wire.OpRemoveWatches, kindBody(p, watch.WatchesOfAnyKind)).code, "%q", p)
		}
	})
}

func TestCheckWatchesStumblesOverPathsWithoutASlashWhereARealServerDoes(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		check := func(path string) wire.Code {
			return w.do(wire.OpCheckWatches, kindBody(path, watch.WatchesOfAnyKind)).code
		}
		require.Equal(t, wire.CodeNoWatcher, check(""))
		require.Equal(t, wire.CodeMarshalling, check("abc"))
		require.Equal(t, wire.CodeNoWatcher, check("a/b"))
		w.do(wire.OpAddWatch, kindBody("/other", modeRecursive))
		require.Equal(t, wire.CodeNoWatcher, check(""))
		require.Equal(t, wire.CodeMarshalling, check("a/b"), "with a recursive watch about, it climbs further")
		w.do(wire.OpAddWatch, kindBody("a/b", modePersistent))
		require.Equal(t, wire.CodeOK, check("a/b"))
		require.Equal(t, wire.CodeNoWatcher, check("//"))
	})
}

func TestAWatchOnTheEmptyPathIsNotOneOnNone(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeOK, w.do(wire.OpAddWatch, kindBody("", 0)).code)
		none := func(e *wire.Encoder) { e.Int32(-1); e.Int32(3) }
		require.Equal(t, wire.CodeNoWatcher, w.do(wire.OpRemoveWatches, none).code)
		require.Equal(t, wire.CodeOK, w.do(wire.OpRemoveWatches, kindBody("", 3)).code)

		add := func(e *wire.Encoder) { e.Int32(-1); e.Int32(0) }
		w.do(wire.OpAddWatch, kindBody("", 0))
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpAddWatch, add).code, "it takes the one for the other")
		w.do(wire.OpGetData, watchBody("", true)) // the watch on the children stays for ever, that on the data does no longer
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpAddWatch, add).code)
		require.Equal(t, wire.CodeOK, w.do(wire.OpRemoveWatches, kindBody("", 3)).code)
		require.Equal(t, wire.CodeOK, w.do(wire.OpAddWatch, add).code)
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpAddWatch, add).code, "what it has it cannot find")
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpRemoveWatches, none).code)
		other := join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeNoWatcher, other.do(wire.OpRemoveWatches, none).code)
		require.Equal(t, wire.CodeOK, other.do(wire.OpAddWatch, add).code)
	})
}
