package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func releaseOf(t testing.TB, series string) wire.Release {
	r, ok := wire.ReleaseOf(series)
	require.True(t, ok, series)
	return r
}

// onEachRelease plays f on a server of each release.
func onEachRelease(t *testing.T, f func(t *testing.T, s *Server, series string)) {
	for _, series := range wire.Series() {
		t.Run(series, func(t *testing.T) {
			inBubble(t, Config{Release: releaseOf(t, series)}, func(t *testing.T, s *Server) { f(t, s, series) })
		})
	}
}

// unknownTo are the operations that clients send, and that a release does not know: the switch in Request.isValid of each.
var unknownTo = map[string][]wire.Op{
	"3.4": {
		wire.OpCreate2, wire.OpReconfig, wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpCreateContainer, wire.OpDeleteContainer, wire.OpCreateTTL,
		wire.OpMultiRead, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpSetWatches2, wire.OpAddWatch, wire.OpWhoAmI,
	},
	"3.5": {wire.OpMultiRead, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpSetWatches2, wire.OpAddWatch, wire.OpWhoAmI},
	"3.6": {wire.OpWhoAmI},
	"3.8": {},
	"3.9": {wire.OpCheck},
}

func TestAReleaseRefusesWhatItDoesNotKnowAndCloses(t *testing.T) {
	onEachRelease(t, func(t *testing.T, s *Server, series string) {
		unknown := map[wire.Op]bool{}
		for _, op := range unknownTo[series] {
			unknown[op] = true
		}
		for _, op := range wire.Ops() {
			switch op {
			case wire.OpConnect, wire.OpCreateSession, wire.OpClose, wire.OpAuth, wire.OpSASL:
				continue
			}
			w := join(t, s, 10*time.Second)
			before := s.Zxid()
			w.send(op, nil)
			r := w.next()
			require.Equal(t, unknown[op], r.code == wire.CodeUnimplemented, "%v", op)
			if unknown[op] {
				require.Equal(t, before, s.Zxid(), "%v", op)
				w.requireClosed()
				back := dial(t, s)
				back.connect(10*time.Second, w.id, w.pass, 0)
				require.Equal(t, w.id, back.id, "the session lives on")
			}
		}
	})
}

func TestAReleaseSaysItsVersion(t *testing.T) {
	for series, version := range map[string]string{"3.4": "3.4.14", "3.5": "3.5.10", "3.6": "3.6.4", "3.8": "3.8.0", "3.9": "3.9.5"} {
		s := newServer(t, Config{Release: releaseOf(t, series)})
		require.Contains(t, ask(t, s, "srvr"), "Zookeeper version: "+version+"-")
		require.Contains(t, ask(t, s, "stat"), "Zookeeper version: "+version+"-")
		require.Contains(t, ask(t, s, "envi"), "zookeeper.version="+version+"-")
		require.Contains(t, ask(t, s, "mntr"), "zk_version\t"+version+"-")
	}
}

func TestMultisOf34HaveNoPartsOfLaterReleases(t *testing.T) {
	onEachRelease(t, func(t *testing.T, s *Server, series string) {
		for _, op := range []wire.Op{wire.OpCreate2, wire.OpCreateContainer} {
			w := join(t, s, 10*time.Second)
			flags := int32(0)
			if op == wire.OpCreateContainer {
				flags = wire.FlagContainer
			}
			r := w.do(wire.OpMulti, multiBody(part(wire.OpCreate, createBody("/a", nil, wire.OpenACL(), 0)), part(op, createBody("/b", nil, wire.OpenACL(), flags)),
				part(wire.OpDelete, versionBody("/b", -1)), part(wire.OpDelete, versionBody("/a", -1))))
			if series == "3.4" {
				require.Equal(t, wire.CodeMarshalling, r.code, "%v", op)
			} else {
				require.Equal(t, wire.CodeOK, r.code, "%v", op)
			}
			w.stat("/")
		}
		w := join(t, s, 10*time.Second)
		code := w.create("/c", nil, wire.FlagContainer).code
		if series == "3.4" {
			require.Equal(t, wire.CodeBadArguments, code, "there are no containers")
		} else {
			require.Equal(t, wire.CodeOK, code)
		}
	})
}

func TestEventsTellTheirZxidSince39(t *testing.T) {
	onEachRelease(t, func(t *testing.T, s *Server, series string) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		a.do(wire.OpGetChildren2, watchBody("/", true))
		a.do(wire.OpExists, watchBody("/n", true))
		made := b.create("/n", nil, 0).zxid
		for _, path := range []string{"/n", "/"} {
			r := a.next()
			want := int64(-1)
			if series == "3.9" {
				want = made
			}
			require.Equal(t, want, r.zxid, path)
		}
	})
}

func TestAnEventThatWasMissedHasNoZxidInAnyRelease(t *testing.T) {
	onEachRelease(t, func(t *testing.T, s *Server, _ string) {
		w := join(t, s, 10*time.Second)
		w.send(wire.OpSetWatches, func(e *wire.Encoder) {
			e.Int64(s.Zxid())
			e.Texts([]string{"/gone"})
			e.Texts(nil)
			e.Texts(nil)
		})
		w.requireEvent(wire.EventDeleted, "/gone")
	})
}

func TestWhoMayNotReadIsToldOfEventsBefore38(t *testing.T) {
	onEachRelease(t, func(t *testing.T, s *Server, series string) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		a.auth("digest", "u:p")
		mine := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: ""}}}
		a.do(wire.OpCreate, createBody("/n", nil, mine, 0))
		b.do(wire.OpExists, watchBody("/n", true))
		a.do(wire.OpSetData, setBody("/n", nil, -1))
		want := []string{}
		if series < "3.8" {
			want = append(want, "changed /n")
		}
		require.Equal(t, want, b.events())
	})
}

func TestWatchesOfSeveralModesStandSideBySideSince39(t *testing.T) {
	for _, series := range []string{"3.6", "3.8", "3.9"} {
		inBubble(t, Config{Release: releaseOf(t, series)}, func(t *testing.T, s *Server) {
			a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
			b.create("/n", nil, 0)
			a.do(wire.OpAddWatch, kindBody("/n", modeRecursive))
			a.do(wire.OpGetData, watchBody("/n", true))
			tour(b, a)
			heard := tour(b, a)
			if series != "3.9" {
				require.Equal(t, []string{"deleted /n/k/g", "deleted /n/k", "deleted /n"}, heard, "an ordinary watch of the data has replaced that half")
				return
			}
			require.Equal(t, []string{
				"changed /n", "changed /n", "created /n/k", "created /n/k/g", "changed /n/k", "deleted /n/k/g", "deleted /n/k", "deleted /n", "created /n",
			}, heard)
			require.Equal(t, wire.CodeNoWatcher, a.do(wire.OpRemoveWatches, kindBody("/n", watch.WatchesOnData)).code)
			a.do(wire.OpAddWatch, kindBody("/n", modePersistent))
			a.do(wire.OpGetChildren2, watchBody("/n", true))
			for _, kind := range []int32{5, 4, watch.WatchesOnChildren} {
				require.Equal(t, wire.CodeOK, a.do(wire.OpCheckWatches, kindBody("/n", kind)).code, kind)
				require.Equal(t, wire.CodeNoWatcher, b.do(wire.OpCheckWatches, kindBody("/n", kind)).code, kind)
				require.Equal(t, wire.CodeOK, a.do(wire.OpRemoveWatches, kindBody("/n", kind)).code, kind)
				require.Equal(t, wire.CodeNoWatcher, a.do(wire.OpRemoveWatches, kindBody("/n", kind)).code, kind)
			}
			require.Zero(t, s.Watches())
		})
	}
}

func TestThePersistentWatchOf39HearsOfEverythingOnce(t *testing.T) {
	inBubble(t, Config{Release: releaseOf(t, "3.9")}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		b.create("/n", nil, 0)
		a.do(wire.OpAddWatch, kindBody("/n", modePersistent))
		a.do(wire.OpAddWatch, kindBody("/n", modeRecursive))
		require.Equal(t, []string{
			"changed /n", "changed /n", "created /n/k", "children /n", "created /n/k/g", "changed /n/k", "deleted /n/k/g", "deleted /n/k", "children /n",
			"deleted /n", "created /n",
		}, tour(b, a))
	})
}
