package engine

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// restoreBody is the body of a setWatches (three lists) or a setWatches2 (five).
func restoreBody(relative int64, lists ...[]string) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		e.Int64(relative)
		for _, l := range lists {
			e.Texts(l)
		}
	}
}

func TestSetWatchesTwoAlsoBringsPersistentWatchesBackWithoutWhatTheyMissed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		a.create("/n", nil, 0)
		seen := a.create("/d", nil, 0).zxid
		_ = a.nc.Close()
		b.do(wire.OpSetData, setBody("/n", nil, -1))
		b.do(wire.OpSetData, setBody("/d", nil, -1))
		b.create("/new", nil, 0)

		again := dial(t, s)
		again.connect(10*time.Second, a.id, a.pass, seen)
		again.send(wire.OpSetWatches2, restoreBody(seen,
			[]string{"/d", "/gone"}, []string{"/new", "/missing"}, []string{"/n"}, []string{"/n", "/lost"}, []string{"/new"}))
		again.requireEvent(wire.EventDataChanged, "/d")
		again.requireEvent(wire.EventDeleted, "/gone")
		again.requireEvent(wire.EventCreated, "/new")
		r := again.next()
		require.Equal(t, wire.CodeOK, r.code)
		require.Empty(t, r.body.Rest())
		require.Equal(t, []string{"/lost", "/missing", "/n", "/new"}, s.WatchedPaths())
		require.Equal(t, []string{"changed /n", "changed /n", "children /n", "children /n", "deleted /n", "created /n"}, tour(b, again),
			"the persistent watch on /n has taken the place of the child watch")
		b.create("/new/k", nil, 0)
		b.create("/lost", nil, 0)
		require.Equal(t, []string{"created /new/k", "created /lost"}, again.events())
	})
}

func TestSetWatchesGoesByTheZxidThatTheClientHasSeen(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		a := join(t, s, 10*time.Second)
		a.create("/n", nil, 0)
		a.create("/n/k", nil, 0)
		changed := a.do(wire.OpSetData, setBody("/n", nil, -1)).zxid
		for relative, want := range map[int64][]string{
			changed - 2: {"changed /n", "children /n"}, changed - 1: {"changed /n"}, changed: {}, 1 << 40: {},
		} {
			a.send(wire.OpSetWatches2, restoreBody(relative, []string{"/n"}, nil, []string{"/n"}, nil, nil))
			got := []string{}
			for r := a.next(); r.xid == wire.XidWatch; r = a.next() {
				kind := wire.EventType(r.body.Int32())
				r.body.Int32()
				got = append(got, map[wire.EventType]string{wire.EventDataChanged: "changed ", wire.EventChildrenChanged: "children "}[kind]+r.body.Text())
			}
			require.Equal(t, want, got, "relative to %d", relative-changed)
			require.Equal(t, 2-len(want), s.WatchesOn("/n"))
			a.do(wire.OpRemoveWatches, kindBody("/n", watch.WatchesOfAnyKind))
		}
	})
}

func TestListsOfWatchesThatLieAboutTheirLengthSetNothing(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		lists := restoreBody(1<<40, []string{"/"}, []string{"/x"}, nil, nil)
		for name, last := range map[string]func(*wire.Encoder){
			"too long":    func(e *wire.Encoder) { e.Int32(70_000_000) },
			"null":        func(e *wire.Encoder) { e.Int32(-1) },
			"missing":     func(*wire.Encoder) {},
			"null string": func(e *wire.Encoder) { e.Int32(1); e.Int32(-1) },
			"half string": func(e *wire.Encoder) { e.Int32(1); e.Int32(9); e.B = append(e.B, "/abc"...) },
		} {
			r := w.do(wire.OpSetWatches2, func(e *wire.Encoder) { lists(e); last(e) })
			require.Equal(t, wire.CodeMarshalling, r.code, name)
			require.Zero(t, s.Watches(), name)
		}
		require.Equal(t, wire.CodeOK, w.do(wire.OpSetWatches2, func(e *wire.Encoder) { lists(e); e.Int32(-7) }).code, "a negative length is no elements")
		require.Equal(t, wire.CodeOK, w.do(wire.OpSetWatches, func(e *wire.Encoder) { lists(e) }).code, "setWatches does not look at what follows")
		require.Equal(t, 2, s.Watches())
	})
}

func TestMoreWatchesThanFitIntoAPacketEndTheConnection(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		long := "/" + string(bytes.Repeat([]byte("x"), 1<<19))
		e := wire.NewFrame(1 << 21)
		e.Int32(1)
		e.Int32(int32(wire.OpSetWatches2))
		restoreBody(0, []string{long, long}, nil, nil, nil, nil)(e)
		_, err := w.nc.Write(e.Frame())
		require.Error(t, err, "the server does not read to the end")
		w.requireClosed()
		fits := join(t, s, 10*time.Second)
		fits.send(wire.OpSetWatches2, restoreBody(0, nil, []string{long[:1<<18]}, []string{long[:1<<18]}, nil, nil))
		fits.requireEvent(wire.EventDeleted, long[:1<<18])
		require.Equal(t, wire.CodeOK, fits.next().code)
	})
}
