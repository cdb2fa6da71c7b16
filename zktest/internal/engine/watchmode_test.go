package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// The modes of addWatch, and events in short.
const (
	modePersistent int32 = 0
	modeRecursive  int32 = 1
)

func kindBody(path string, kind int32) func(*wire.Encoder) { return versionBody(path, kind) }

// events returns what has come for a client, as "created /path", in order. The ping is answered
// behind it.
func (w *rawClient) events() []string {
	w.t.Helper()
	w.send(wire.OpPing, nil)
	names := map[wire.EventType]string{
		wire.EventCreated: "created ", wire.EventDeleted: "deleted ", wire.EventDataChanged: "changed ", wire.EventChildrenChanged: "children ",
	}
	out := []string{}
	for {
		r := w.next()
		if r.xid == wire.XidPing {
			return out
		}
		require.Equal(w.t, wire.XidWatch, r.xid)
		kind := names[wire.EventType(r.body.Int32())]
		require.Equal(w.t, wire.StateSyncConnected, r.body.Int32())
		out = append(out, kind+r.body.Text())
	}
}

// tour changes /n in every way there is, and /n/k below it, and returns what a client hears of it.
func tour(by, hears *rawClient) []string {
	for _, step := range []struct {
		op   wire.Op
		body func(*wire.Encoder)
	}{
		{wire.OpSetData, setBody("/n", nil, -1)}, {wire.OpSetData, setBody("/n", nil, -1)},
		{wire.OpCreate, createBody("/n/k", nil, wire.OpenACL(), 0)}, {wire.OpCreate, createBody("/n/k/g", nil, wire.OpenACL(), 0)},
		{wire.OpSetData, setBody("/n/k", nil, -1)}, {wire.OpDelete, versionBody("/n/k/g", -1)}, {wire.OpDelete, versionBody("/n/k", -1)},
		{wire.OpDelete, versionBody("/n", -1)}, {wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0)},
	} {
		require.Equal(by.t, wire.CodeOK, by.do(step.op, step.body).code, "%v", step.op)
	}
	return hears.events()
}

func TestAPersistentWatchStaysAndHearsOfItsNodeAndOfTheChildrensNumber(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		b.create("/n", nil, 0)
		r := a.do(wire.OpAddWatch, kindBody("/n", modePersistent))
		require.Equal(t, wire.CodeOK, r.code)
		require.Equal(t, []byte{0, 0, 0, 0}, r.body.Rest(), "the reply repeats the result in its body")
		require.Equal(t, 2, s.WatchesOn("/n"), "it counts as a data and as a child watch")
		for range 3 {
			require.Equal(t, []string{
				"changed /n", "changed /n", "children /n", "children /n", "deleted /n", "created /n",
			}, tour(b, a))
		}
		require.Equal(t, 2, s.Watches())
	})
}

func TestARecursiveWatchHearsOfTheWholeSubtreeButNotOfChildrensNumbers(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		b.create("/n", nil, 0)
		a.do(wire.OpAddWatch, kindBody("/n", modeRecursive))
		b.create("/nn", nil, 0)
		b.create("/nn/k", nil, 0)
		for range 2 {
			require.Equal(t, []string{
				"changed /n", "changed /n", "created /n/k", "created /n/k/g", "changed /n/k", "deleted /n/k/g", "deleted /n/k",
				"deleted /n", "created /n",
			}, tour(b, a))
		}
		require.Equal(t, 2, s.WatchesOn("/n"))
		require.Zero(t, s.WatchesOn("/n/k"))
	})
}

func TestAClientHasOneWatchPerPathAndTheLastModeCounts(t *testing.T) {
	get := func(w *rawClient) { w.do(wire.OpGetData, watchBody("/n", true)) }
	children := func(w *rawClient) { w.do(wire.OpGetChildren, watchBody("/n", true)) }
	add := func(mode int32) func(*rawClient) {
		return func(w *rawClient) { w.do(wire.OpAddWatch, kindBody("/n", mode)) }
	}
	all := []string{
		"changed /n", "changed /n", "created /n/k", "created /n/k/g", "changed /n/k", "deleted /n/k/g", "deleted /n/k",
		"deleted /n", "created /n",
	}
	for name, c := range map[string]struct {
		set  []func(*rawClient)
		want []string
	}{
		"an ordinary watch is absorbed by a persistent one": {[]func(*rawClient){get, children, add(0)}, []string{
			"changed /n", "changed /n", "children /n", "children /n", "deleted /n", "created /n"}},
		"and by a recursive one":                                  {[]func(*rawClient){get, children, add(1)}, all},
		"recursive replaces persistent":                           {[]func(*rawClient){add(0), add(1)}, all},
		"persistent replaces recursive":                           {[]func(*rawClient){add(1), add(0)}, []string{"changed /n", "changed /n", "children /n", "children /n", "deleted /n", "created /n"}},
		"a getData makes the data half go with its event":         {[]func(*rawClient){add(0), get}, []string{"changed /n", "children /n", "children /n", "deleted /n"}},
		"a getChildren makes the child half go with its event":    {[]func(*rawClient){add(0), children}, []string{"changed /n", "changed /n", "children /n", "deleted /n", "created /n"}},
		"of a recursive one the child half still hears deletions": {[]func(*rawClient){add(1), get}, []string{"changed /n", "deleted /n/k/g", "deleted /n/k", "deleted /n"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *Server) {
				a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
				b.create("/n", nil, 0)
				for _, f := range c.set {
					f(a)
				}
				require.Equal(t, c.want, tour(b, a))
			})
		})
	}
}

func TestAnEventReachesAClientOnceHoweverManyOfItsWatchesItMeets(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		b.create("/r", nil, 0)
		b.create("/r/a", nil, 0)
		a.do(wire.OpAddWatch, kindBody("/", modeRecursive))
		a.do(wire.OpAddWatch, kindBody("/r", modeRecursive))
		a.do(wire.OpAddWatch, kindBody("/r/a", modePersistent))
		a.do(wire.OpExists, watchBody("/r/a/z", true))
		b.create("/r/a/z", nil, 0)
		require.Equal(t, []string{"created /r/a/z", "children /r/a"}, a.events())
		require.Zero(t, s.WatchesOn("/r/a/z"), "the ordinary watch has had its event")
		a.do(wire.OpGetData, watchBody("/r/a/z", true))
		a.do(wire.OpGetChildren, watchBody("/r/a/z", true))
		b.do(wire.OpDelete, versionBody("/r/a/z", -1))
		b.do(wire.OpDelete, versionBody("/r/a", -1))
		b.do(wire.OpDelete, versionBody("/r", -1))
		require.Equal(t, []string{"deleted /r/a/z", "children /r/a", "deleted /r/a", "deleted /r"}, a.events())
		require.Zero(t, s.WatchesOn("/r/a/z"))
	})
}

func TestTheRootCanBeWatchedForEverToo(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b, c := join(t, s, 10*time.Second), join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		a.do(wire.OpAddWatch, kindBody("/", modePersistent))
		b.do(wire.OpAddWatch, kindBody("/", modeRecursive))
		c.create("/q", nil, 0)
		c.create("/q/w", nil, 0)
		c.do(wire.OpSetData, setBody("/", nil, -1))
		require.Equal(t, []string{"children /", "changed /"}, a.events())
		require.Equal(t, []string{"created /q", "created /q/w", "changed /"}, b.events())
	})
}

func TestEphemeralsContainersAndMultisShowInARecursiveWatch(t *testing.T) {
	inBubble(t, Config{Tick: time.Second, ContainerInterval: time.Minute}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 20*time.Second), join(t, s, 5*time.Second)
		a.do(wire.OpAddWatch, kindBody("/", modeRecursive))
		b.create("/e", nil, wire.FlagEphemeral)
		b.do(wire.OpCreateContainer, createBody("/c", nil, wire.OpenACL(), wire.FlagContainer))
		b.create("/c/k", nil, 0)
		b.do(wire.OpDelete, versionBody("/c/k", -1))
		b.do(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/m", nil, wire.OpenACL(), 0)), part(wire.OpDelete, versionBody("/m", -1))))
		b.do(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/m", nil, wire.OpenACL(), 0)), part(wire.OpCheck, versionBody("/gone", -1))))
		require.Equal(t, []string{
			"created /e", "created /c", "created /c/k", "deleted /c/k", "created /m", "deleted /m",
		}, a.events(), "a multi that fails shows nothing")
		var heard []string
		for range 13 {
			time.Sleep(5 * time.Second)
			heard = append(heard, a.events()...)
		}
		require.Equal(t, []string{"deleted /e", "deleted /c"}, heard, "b has said nothing more: its session expires")
	})
}

func TestWhoMayNotReadANodeHearsNothingOfItButKeepsThePersistentWatch(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		owner, stranger := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeOK, owner.auth("digest", "u:p").code)
		owner.do(wire.OpAddWatch, kindBody("/", modeRecursive))
		stranger.do(wire.OpAddWatch, kindBody("/", modeRecursive))
		stranger.do(wire.OpAddWatch, kindBody("/secret", modePersistent))
		secret := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: ""}}}
		owner.send(wire.OpCreate, createBody("/secret", nil, secret, 0))
		owner.requireEvent(wire.EventCreated, "/secret")
		require.Equal(t, wire.CodeOK, owner.next().code)
		owner.send(wire.OpCreate, createBody("/secret/open", nil, wire.OpenACL(), 0))
		owner.requireEvent(wire.EventCreated, "/secret/open")
		require.Equal(t, wire.CodeOK, owner.next().code)
		require.Equal(t, []string{"created /secret/open"}, stranger.events(), "not the children of a node that it may not read")
		require.Equal(t, 2, s.WatchesOn("/secret"))
	})
}

func TestEventsPrecedeTheReplyOfTheirOwnCauseInTheOrderOfTheChanges(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		w.do(wire.OpAddWatch, kindBody("/", modeRecursive))
		w.do(wire.OpAddWatch, kindBody("/p", modePersistent))
		w.send(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/p", nil, wire.OpenACL(), 0)), part(wire.OpCreate, createBody("/p/k", nil, wire.OpenACL(), 0))))
		w.requireEvent(wire.EventCreated, "/p")
		w.requireEvent(wire.EventCreated, "/p/k")
		w.requireEvent(wire.EventChildrenChanged, "/p")
		require.Equal(t, w.xid, w.next().xid)
	})
}

func TestWatchesOfEveryKindGoWithTheConnection(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		old, other := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		for i := range int32(2) {
			old.do(wire.OpAddWatch, kindBody(fmt.Sprint("/", i), i))
		}
		old.do(wire.OpExists, watchBody("/e", true))
		require.Equal(t, 5, s.Sessions()[0].Watches)
		moved := dial(t, s)
		moved.connect(10*time.Second, old.id, old.pass, 0)
		synctest.Wait()
		require.Zero(t, s.Watches(), "the session lives on, without watches")
		other.create("/0", nil, 0)
		require.Empty(t, moved.events())
	})
}
