package zkconn

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// heard collects events in the order in which they are told.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) tell(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, what)
}

func (h *heard) event(path string, n Event) {
	h.tell(path + map[Event]string{Deleted: " gone", NotFound: " missing", Changed: " changed", Disconnected: " cut"}[n])
}

func (h *heard) take() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all = nil
	return all
}

// connectedTo opens a client whose only connection the test answers itself.
func connectedTo(t *testing.T, p *peer) (*Client, *Epoch, *script) {
	c := p.open(time.Hour)
	conn := p.greet(1, time.Hour)
	e, err := c.Epoch(t.Context())
	require.NoError(t, err)
	return c, e, newScript(p, conn)
}

// Whoever subscribes while an earlier watch of the same node is being told of its event shares no watch with it.
func TestAWatchIsNotWaitingAnyMoreBeforeItIsToldOfItsEvent(t *testing.T) {
	for what, happen := range map[string]func(*hub){
		"an event":     func(h *hub) { h.event(eventData, "/n") },
		"a disconnect": (*hub).disconnected,
	} {
		var h hub
		var w, second, later *Watch
		key := watchKey{"/n", dataWatch}
		w, _ = h.subscribe(key, func(Event) {
			require.False(t, w.Waiting(), what)
			later, _ = h.subscribe(key, func(Event) {})
		})
		second, _ = h.subscribe(watchKey{"/other", dataWatch}, func(Event) {})
		require.True(t, w.Waiting(), what)
		happen(&h)
		require.True(t, later.Waiting(), what)
		require.False(t, w.Waiting(), what)
		require.Equal(t, what == "an event", second.Waiting(), what)
	}
}

// The goroutine that closes a connection may be slow to tell of it. Nothing of the next connection may be looked at before.
func TestNoSubscriberHearsOfTheNextConnectionFirst(t *testing.T) {
	var h hub
	var told atomic.Bool
	telling, goOn := make(chan struct{}), make(chan struct{})
	h.subscribe(watchKey{"/n", dataWatch}, func(Event) {
		close(telling)
		<-goOn
		told.Store(true)
	})
	go h.disconnected()
	<-telling
	time.AfterFunc(10*time.Millisecond, func() { close(goOn) })
	h.disconnected() // by the one who greets the next connection
	require.True(t, told.Load())
}

func TestWatchesOfOneNodeShareOneOnTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		h := &heard{}
		e.WatchAll([]string{"/own", "/other"}, h.event, func() { h.tell("sure") })
		xid, op, body := s.next()
		require.EqualValues(t, opSetWatches, op)
		require.Equal(t, setWatchesBody(dataWatch, []string{"/own", "/other"}), body)
		second := e.WatchAll([]string{"/other"}, h.event, nil)
		e.WatchAll([]string{"/own"}, func(string, Event) {}, func() { h.tell("also sure") })
		require.Empty(t, h.take(), "nothing is sure before the answer")
		s.reply(xid, 0, nil)
		require.Equal(t, []string{"sure", "also sure"}, h.take())
		e.WatchAll([]string{"/own"}, h.event, func() { h.tell("sure at once") })
		require.Equal(t, []string{"sure at once"}, h.take())
		require.False(t, s.pending(), "the server watches both nodes already")
		second[0].Stop()
		s.event(eventDeleted, "/other")
		require.Equal(t, []string{"/other gone"}, h.take(), "whoever stopped hears nothing")
		s.event(eventData, "/own")
		require.Equal(t, []string{"/own changed", "/own changed"}, h.take())
		s.event(eventDeleted, "/own")
		require.Empty(t, h.take(), "a watch tells once")
		s.close(c)
	})
}

func TestEventsAreToldInTheOrderOfTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		h := &heard{}
		e.WatchAll([]string{"/a", "/b"}, h.event, func() { h.tell("sure") })
		xid, _, _ := s.next()
		s.event(eventDeleted, "/b") // as a server does that finds a node gone when it is to watch it
		s.reply(xid, 0, nil)
		s.event(eventDeleted, "/a")
		require.Equal(t, []string{"/b missing", "sure", "/a gone"}, h.take())
		s.close(c)
	})
}

// Its event has used up what that answer is about.
func TestAnAnswerSaysNothingOfAWatchThatWasAskedForAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		h := &heard{}
		e.WatchAll([]string{"/a"}, h.event, nil)
		first, _, _ := s.next()
		s.event(eventDeleted, "/a")
		require.Equal(t, []string{"/a missing"}, h.take())
		e.WatchAll([]string{"/a"}, h.event, nil)
		second, _, _ := s.next()
		s.reply(first, 0, nil)
		synctest.Wait()
		e.WatchAll([]string{"/a"}, h.event, func() { h.tell("sure") })
		s.event(eventDeleted, "/a")
		s.reply(second, 0, nil)
		require.Equal(t, []string{"/a missing", "/a missing"}, h.take())
		s.close(c)
	})
}

func TestALostConnectionCutsEveryWatchAndTheNextBeginsWithNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		h := &heard{}
		e.WatchAll([]string{"/a"}, h.event, nil)
		xid, _, _ := s.next()
		s.reply(xid, 0, nil)
		s.conn.Close()
		require.Equal(t, []string{"/a cut"}, h.take())
		e.WatchAll([]string{"/a"}, h.event, nil)
		require.Equal(t, []string{"/a cut"}, h.take(), "without a connection there is nothing to rely on")
		s = newScript(p, p.greet(1, time.Hour))
		require.NoError(t, e.Await(t.Context()))
		e.WatchAll([]string{"/a"}, h.event, nil)
		_, op, _ := s.next()
		require.EqualValues(t, opSetWatches, op, "the new server is asked anew")
		require.Empty(t, h.take())
		s.close(c)
	})
}

func TestRefusedWatchesAreCutRatherThanSleptOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		h := &heard{}
		e.WatchAll([]string{"/a"}, h.event, func() { h.tell("sure") })
		xid, _, _ := s.next()
		s.reply(xid, -6, nil)
		require.Equal(t, []string{"/a cut"}, h.take())
		s.close(c)
	})
}

func TestAWatchOfANodeThatIsNotThereLeavesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		got := make(chan error, 1)
		go func() {
			_, err := e.Watch(t.Context(), "/a", func(Event) {})
			got <- err
		}()
		xid, op, body := s.next()
		require.EqualValues(t, opGetData, op, "exists would leave a watch on a node that may never come")
		require.Equal(t, readRequest("/a", true), body)
		s.reply(xid, -101, nil)
		require.ErrorIs(t, <-got, zk.ErrNoNode)
		e.hub.mu.Lock()
		require.Empty(t, e.hub.nodes)
		e.hub.mu.Unlock()
		s.close(c)
	})
}

func TestANodeThatMayNotBeReadIsWatchedByItsExistence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		h := &heard{}
		got := make(chan error, 1)
		go func() {
			_, err := e.Watch(t.Context(), "/a", func(n Event) { h.event("/a", n) })
			got <- err
		}()
		xid, _, _ := s.next()
		s.reply(xid, -102, nil)
		xid, op, _ := s.next()
		require.EqualValues(t, opExists, op)
		s.reply(xid, 0, make([]byte, jute.StatSize))
		require.NoError(t, <-got)
		s.event(eventDeleted, "/a")
		require.Equal(t, []string{"/a gone"}, h.take())
		s.close(c)
	})
}

func TestChildAndDataWatchesOfOnePathAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		h := &heard{}
		got := make(chan []string, 1)
		go func() {
			_, l, err := e.WatchChildren(t.Context(), "/d", func(n Event) { h.event("children", n) })
			require.NoError(t, err)
			got <- l.Names
		}()
		xid, op, _ := s.next()
		require.EqualValues(t, opGetChildren2, op)
		listing := jute.AppendText(jute.AppendInt32(nil, 1), "x")
		s.reply(xid, 0, append(listing, make([]byte, jute.StatSize)...))
		require.Equal(t, []string{"x"}, <-got)
		s.event(eventData, "/d")
		require.Empty(t, h.take())
		s.event(eventChildren, "/d")
		require.Equal(t, []string{"children changed"}, h.take())
		s.close(c)
	})
}

// A listener that hears of an event may subscribe again before the others have heard of it.
func TestAnEventIsNotForSubscriptionsThatItCauses(t *testing.T) {
	kinds := []watchKind{dataWatch, childWatch, absenceWatch}
	for _, what := range []int32{eventCreated, eventDeleted, eventData, eventChildren} {
		h, told := &hub{}, 0
		subscribe := func(k watchKind, tell func(Event)) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.subscribe(watchKey{"/n", k}, tell)
		}
		for _, k := range kinds {
			subscribe(k, func(Event) {
				told++
				for _, k := range kinds {
					subscribe(k, func(Event) { require.Fail(t, "a later subscription was told", "event %d", what) })
				}
			})
		}
		h.event(what, "/n")
		require.NotZero(t, told)
	}
}

func TestTheUseOfAWatchLeavesNothingToConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		h := &heard{}
		e.WatchAll([]string{"/own"}, h.event, func() { h.tell("sure") })
		xid, _, _ := s.next()
		s.event(eventData, "/own")
		s.reply(xid, 0, nil)
		require.Equal(t, []string{"/own changed"}, h.take())
		s.close(c)
	})
}
