package zkserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRemoveWatchesTakesTheKindsThatItNamesAndTellsNobody(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b, c := join(t, s, 10*time.Second), join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		c.create("/n", nil, 0)
		for _, w := range []*rawClient{a, b} {
			w.do(OpGetData, watchBody("/n", true))
			w.do(OpGetChildren, watchBody("/n", true))
		}
		require.Equal(t, CodeOK, a.do(OpRemoveWatches, kindBody("/n", watchesOnChildren)).code)
		require.Equal(t, CodeNoWatcher, a.do(OpRemoveWatches, kindBody("/n", watchesOnChildren)).code)
		require.Equal(t, 3, s.WatchesOn("/n"))
		require.Equal(t, CodeOK, a.do(OpRemoveWatches, kindBody("/n", watchesOfAnyKind)).code, "one of the kinds is enough")
		require.Equal(t, CodeNoWatcher, a.do(OpRemoveWatches, kindBody("/n", watchesOfAnyKind)).code)
		require.Equal(t, 2, s.WatchesOn("/n"))
		c.do(OpSetData, setBody("/n", nil, -1))
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
		{modePersistent, watchesOnChildren, []string{"changed /n", "changed /n", "deleted /n", "created /n"}},
		{modePersistent, watchesOnData, []string{"children /n", "children /n", "deleted /n"}},
		{modePersistent, watchesOfAnyKind, []string{}},
		{modeRecursive, watchesOnData, []string{"deleted /n/k/g", "deleted /n/k", "deleted /n"}},
		{modeRecursive, watchesOfAnyKind, []string{}},
	} {
		inBubble(t, Config{}, func(t *testing.T, s *Server) {
			a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
			b.create("/n", nil, 0)
			a.do(OpAddWatch, kindBody("/n", c.mode))
			require.Equal(t, CodeOK, a.do(OpRemoveWatches, kindBody("/n", c.kind)).code)
			require.Equal(t, c.want, tour(b, a), "mode %d without kind %d", c.mode, c.kind)
		})
	}
}

func TestAnExistsWatchOnAMissingNodeIsADataWatch(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a := join(t, s, 10*time.Second)
		a.do(OpExists, watchBody("/gone", true))
		require.Equal(t, CodeNoWatcher, a.do(OpCheckWatches, kindBody("/gone", watchesOnChildren)).code)
		require.Equal(t, CodeOK, a.do(OpCheckWatches, kindBody("/gone", watchesOnData)).code)
		require.Equal(t, CodeOK, a.do(OpCheckWatches, kindBody("/gone", watchesOfAnyKind)).code)
		require.Equal(t, CodeNoWatcher, a.do(OpRemoveWatches, kindBody("/gone", watchesOnChildren)).code)
		require.Equal(t, CodeOK, a.do(OpRemoveWatches, kindBody("/gone", watchesOnData)).code)
		require.Zero(t, s.Watches())
	})
}

func TestCheckWatchesDoesNotTellWhoseWatchItFinds(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		b.do(OpExists, watchBody("/n", true))
		require.Equal(t, CodeOK, a.do(OpCheckWatches, kindBody("/n", watchesOnData)).code, "as a 3.8 server does")
		require.Equal(t, CodeNoWatcher, a.do(OpRemoveWatches, kindBody("/n", watchesOnData)).code)
		a.do(OpAddWatch, kindBody("/", modeRecursive))
		require.Equal(t, CodeNoWatcher, a.do(OpCheckWatches, kindBody("/below", watchesOfAnyKind)).code,
			"a recursive watch is on its own path only")
	})
}

func TestUnknownModesAndKindsAreMarshallingErrorsAndPathsAreNotLookedAt(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for _, op := range []Op{OpAddWatch, OpCheckWatches, OpRemoveWatches} {
			for _, kind := range []int32{-1, 4, 1 << 30, -1 << 31} {
				r := w.do(op, kindBody("/n", kind))
				require.Equal(t, CodeMarshalling, r.code, "%v %d", op, kind)
				require.Empty(t, r.body.Rest())
			}
			require.Equal(t, CodeMarshalling, w.do(op, pathBody("/n")).code, "%v without a kind", op)
			require.Equal(t, CodeMarshalling, w.do(op, nil).code)
		}
		require.Equal(t, CodeMarshalling, w.do(OpAddWatch, kindBody("/n", 2)).code)
		require.Equal(t, CodeMarshalling, w.do(OpRemoveWatches, kindBody("/n", 0)).code)
		require.Zero(t, s.Watches())
		for _, p := range []string{"", "abc", "a/b", "/a/", "//", "/./x", "\x00"} {
			require.Equal(t, CodeOK, w.do(OpAddWatch, kindBody(p, modePersistent)).code, "%q", p)
			require.Equal(t, 2, s.Watches(), "%q", p)
			require.Equal(t, CodeOK, w.do(OpRemoveWatches, kindBody(p, watchesOfAnyKind)).code, "%q", p)
		}
	})
}

func TestCheckWatchesStumblesOverPathsWithoutASlashWhereARealServerDoes(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		check := func(path string) Code { return w.do(OpCheckWatches, kindBody(path, watchesOfAnyKind)).code }
		require.Equal(t, CodeNoWatcher, check(""))
		require.Equal(t, CodeMarshalling, check("abc"))
		require.Equal(t, CodeNoWatcher, check("a/b"))
		w.do(OpAddWatch, kindBody("/other", modeRecursive))
		require.Equal(t, CodeNoWatcher, check(""))
		require.Equal(t, CodeMarshalling, check("a/b"), "with a recursive watch about, it climbs further")
		w.do(OpAddWatch, kindBody("a/b", modePersistent))
		require.Equal(t, CodeOK, check("a/b"))
		require.Equal(t, CodeNoWatcher, check("//"))
	})
}

func TestAWatchOnTheEmptyPathIsNotOneOnNone(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		require.Equal(t, CodeOK, w.do(OpAddWatch, kindBody("", 0)).code)
		none := func(e *Encoder) { e.Int32(-1); e.Int32(3) }
		require.Equal(t, CodeNoWatcher, w.do(OpRemoveWatches, none).code)
		require.Equal(t, CodeOK, w.do(OpRemoveWatches, kindBody("", 3)).code)

		add := func(e *Encoder) { e.Int32(-1); e.Int32(0) }
		w.do(OpAddWatch, kindBody("", 0))
		require.Equal(t, CodeMarshalling, w.do(OpAddWatch, add).code, "it takes the one for the other")
		w.do(OpGetData, watchBody("", true)) // the watch on the children stays for ever, that on the data does no longer
		require.Equal(t, CodeMarshalling, w.do(OpAddWatch, add).code)
		require.Equal(t, CodeOK, w.do(OpRemoveWatches, kindBody("", 3)).code)
		require.Equal(t, CodeOK, w.do(OpAddWatch, add).code)
		require.Equal(t, CodeMarshalling, w.do(OpAddWatch, add).code, "what it has it cannot find")
		require.Equal(t, CodeMarshalling, w.do(OpRemoveWatches, none).code)
		other := join(t, s, 10*time.Second)
		require.Equal(t, CodeNoWatcher, other.do(OpRemoveWatches, none).code)
		require.Equal(t, CodeOK, other.do(OpAddWatch, add).code)
	})
}
