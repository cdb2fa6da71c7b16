package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestEachWatchFiresOnceForWhatItWatches(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeNoNode, a.do(wire.OpExists, watchBody("/x", true)).code)
		require.Equal(t, wire.CodeNoNode, a.do(wire.OpGetData, watchBody("/y", true)).code)
		require.Equal(t, 1, s.Watches(), "a failed getData leaves no watch")
		b.create("/x", nil, 0)
		a.requireEvent(wire.EventCreated, "/x")

		a.do(wire.OpGetData, watchBody("/x", true))
		a.do(wire.OpExists, watchBody("/x", true))
		a.do(wire.OpGetChildren, watchBody("/x", true))
		require.Equal(t, 2, s.WatchesOn("/x"), "exists and getData share a watch")
		b.do(wire.OpSetData, setBody("/x", nil, -1))
		a.requireEvent(wire.EventDataChanged, "/x")
		b.create("/x/k", nil, 0)
		a.requireEvent(wire.EventChildrenChanged, "/x")
		b.do(wire.OpSetData, setBody("/x", nil, -1))
		require.Zero(t, s.Watches())

		a.do(wire.OpGetData, watchBody("/x/k", true))
		a.do(wire.OpGetChildren2, watchBody("/x/k", true))
		a.do(wire.OpGetChildren2, watchBody("/x", true))
		b.do(wire.OpDelete, versionBody("/x/k", -1))
		a.requireEvent(wire.EventDeleted, "/x/k")
		a.requireEvent(wire.EventChildrenChanged, "/x")
		require.Equal(t, 5, s.Notifications(), "data and child watch of one client tell it once")
		require.Zero(t, s.Watches())
	})
}

func TestAnEventPrecedesTheReplyThatShowsTheChange(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		w.create("/x", nil, 0)
		w.do(wire.OpGetData, watchBody("/x", true))
		w.send(wire.OpSetData, setBody("/x", []byte("new"), 0))
		w.requireEvent(wire.EventDataChanged, "/x")
		require.Equal(t, w.xid, w.next().xid)
	})
}

func TestWatchesGoWithTheConnectionAndSetWatchesBringsThemBack(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		for _, p := range []string{"/d0", "/d1", "/d2", "/e0", "/c0", "/c1", "/c2"} {
			a.create(p, nil, 0)
		}
		seen := a.do(wire.OpGetData, watchBody("/d0", true)).zxid
		_ = a.nc.Close()
		synctest.Wait()
		require.Zero(t, s.Watches())

		b.do(wire.OpSetData, setBody("/d1", nil, -1))
		b.do(wire.OpDelete, versionBody("/d2", -1))
		b.create("/c1/k", nil, 0)
		b.do(wire.OpDelete, versionBody("/c2", -1))

		again := dial(t, s)
		again.connect(10*time.Second, a.id, a.pass, seen)
		require.Equal(t, a.id, again.id)
		again.send(wire.OpSetWatches, func(e *wire.Encoder) {
			e.Int64(seen)
			e.Texts([]string{"/d0", "/d1", "/d2"})
			e.Texts([]string{"/e0", "/e1"})
			e.Texts([]string{"/c0", "/c1", "/c2"})
		})
		again.requireEvent(wire.EventDataChanged, "/d1")
		again.requireEvent(wire.EventDeleted, "/d2")
		again.requireEvent(wire.EventCreated, "/e0")
		again.requireEvent(wire.EventChildrenChanged, "/c1")
		again.requireEvent(wire.EventDeleted, "/c2")
		require.Equal(t, wire.CodeOK, again.next().code)
		require.Equal(t, []string{"/c0", "/d0", "/e1"}, s.WatchedPaths())
	})
}

func TestTheEphemeralsOfAClosedSessionGoWithTheirWatches(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		a.create("/e", nil, wire.FlagEphemeral)
		a.create("/p", nil, 0)
		b.do(wire.OpExists, watchBody("/e", true))
		require.Equal(t, wire.CodeOK, a.do(wire.OpClose, nil).code)
		a.requireClosed()
		b.requireEvent(wire.EventDeleted, "/e")
		_, ok := s.Node("/p")
		require.True(t, ok)
		require.Len(t, s.Sessions(), 1)
	})
}

func TestWhoMayNotReadANodeLosesTheWatchWithoutAnEvent(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		owner, stranger := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeOK, owner.auth("digest", "u:p").code)
		stranger.do(wire.OpExists, watchBody("/secret", true))
		owner.do(wire.OpExists, watchBody("/secret", true))
		owner.send(wire.OpCreate, createBody("/secret", nil, []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: ""}}}, 0))
		owner.requireEvent(wire.EventCreated, "/secret")
		require.Equal(t, wire.CodeOK, owner.next().code)
		require.Zero(t, s.Watches())
		require.Equal(t, wire.CodeOK, stranger.do(wire.OpExists, watchBody("/secret", false)).code, "the next frame is the reply")
	})
}

func TestAReadInsideAMultiSetsNoWatch(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		r := w.do(wire.OpMultiRead, multiBody(part(wire.OpGetData, watchBody("/", true)), part(wire.OpGetChildren, watchBody("/", true))))
		require.Equal(t, wire.CodeOK, r.code)
		require.Zero(t, s.Watches())
	})
}
