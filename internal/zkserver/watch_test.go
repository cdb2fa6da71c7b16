package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEachWatchFiresOnceForWhatItWatches(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, CodeNoNode, a.do(OpExists, watchBody("/x", true)).code)
		require.Equal(t, CodeNoNode, a.do(OpGetData, watchBody("/y", true)).code)
		require.Equal(t, 1, s.Watches(), "a failed getData leaves no watch")
		b.create("/x", nil, 0)
		a.requireEvent(EventCreated, "/x")

		a.do(OpGetData, watchBody("/x", true))
		a.do(OpExists, watchBody("/x", true))
		a.do(OpGetChildren, watchBody("/x", true))
		require.Equal(t, 2, s.WatchesOn("/x"), "exists and getData share a watch")
		b.do(OpSetData, setBody("/x", nil, -1))
		a.requireEvent(EventDataChanged, "/x")
		b.create("/x/k", nil, 0)
		a.requireEvent(EventChildrenChanged, "/x")
		b.do(OpSetData, setBody("/x", nil, -1))
		require.Zero(t, s.Watches())

		a.do(OpGetData, watchBody("/x/k", true))
		a.do(OpGetChildren2, watchBody("/x/k", true))
		a.do(OpGetChildren2, watchBody("/x", true))
		b.do(OpDelete, versionBody("/x/k", -1))
		a.requireEvent(EventDeleted, "/x/k")
		a.requireEvent(EventChildrenChanged, "/x")
		require.Equal(t, 5, s.Notifications(), "data and child watch of one client tell it once")
		require.Zero(t, s.Watches())
	})
}

func TestAnEventPrecedesTheReplyThatShowsTheChange(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		w.create("/x", nil, 0)
		w.do(OpGetData, watchBody("/x", true))
		w.send(OpSetData, setBody("/x", []byte("new"), 0))
		w.requireEvent(EventDataChanged, "/x")
		require.Equal(t, w.xid, w.next().xid)
	})
}

func TestWatchesGoWithTheConnectionAndSetWatchesBringsThemBack(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		for _, p := range []string{"/d0", "/d1", "/d2", "/e0", "/c0", "/c1", "/c2"} {
			a.create(p, nil, 0)
		}
		seen := a.do(OpGetData, watchBody("/d0", true)).zxid
		_ = a.nc.Close()
		synctest.Wait()
		require.Zero(t, s.Watches())

		b.do(OpSetData, setBody("/d1", nil, -1))
		b.do(OpDelete, versionBody("/d2", -1))
		b.create("/c1/k", nil, 0)
		b.do(OpDelete, versionBody("/c2", -1))

		again := dial(t, s)
		again.connect(10*time.Second, a.id, a.pass, seen)
		require.Equal(t, a.id, again.id)
		again.send(OpSetWatches, func(e *Encoder) {
			e.Int64(seen)
			e.Texts([]string{"/d0", "/d1", "/d2"})
			e.Texts([]string{"/e0", "/e1"})
			e.Texts([]string{"/c0", "/c1", "/c2"})
		})
		again.requireEvent(EventDataChanged, "/d1")
		again.requireEvent(EventDeleted, "/d2")
		again.requireEvent(EventCreated, "/e0")
		again.requireEvent(EventChildrenChanged, "/c1")
		again.requireEvent(EventDeleted, "/c2")
		require.Equal(t, CodeOK, again.next().code)
		require.Equal(t, []string{"/c0", "/d0", "/e1"}, s.WatchedPaths())
	})
}

func TestTheEphemeralsOfAClosedSessionGoWithTheirWatches(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		a.create("/e", nil, FlagEphemeral)
		a.create("/p", nil, 0)
		b.do(OpExists, watchBody("/e", true))
		require.Equal(t, CodeOK, a.do(OpClose, nil).code)
		a.requireClosed()
		b.requireEvent(EventDeleted, "/e")
		_, ok := s.Node("/p")
		require.True(t, ok)
		require.Len(t, s.Sessions(), 1)
	})
}

func TestWhoMayNotReadANodeLosesTheWatchWithoutAnEvent(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		owner, stranger := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, CodeOK, owner.auth("digest", "u:p").code)
		stranger.do(OpExists, watchBody("/secret", true))
		owner.do(OpExists, watchBody("/secret", true))
		owner.send(OpCreate, createBody("/secret", nil, []ACL{{PermAll, ID{"auth", ""}}}, 0))
		owner.requireEvent(EventCreated, "/secret")
		require.Equal(t, CodeOK, owner.next().code)
		require.Zero(t, s.Watches())
		require.Equal(t, CodeOK, stranger.do(OpExists, watchBody("/secret", false)).code, "the next frame is the reply")
	})
}

func TestAReadInsideAMultiSetsNoWatch(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		r := w.do(OpMultiRead, multiBody(part(OpGetData, watchBody("/", true)), part(OpGetChildren, watchBody("/", true))))
		require.Equal(t, CodeOK, r.code)
		require.Zero(t, s.Watches())
	})
}
