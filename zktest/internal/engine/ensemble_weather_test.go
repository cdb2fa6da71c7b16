package engine

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// careless is a client that sends and never waits for an answer.
type careless struct {
	nc   net.Conn
	xid  int32
	id   int64
	pass []byte
}

// open makes a connection with a new session, or resumes the one it had.
func (w *careless) open(s *Server) {
	if w.nc != nil {
		_ = w.nc.Close()
	}
	client, server := net.Pipe()
	s.ServeConn(server)
	w.nc = client
	e := wire.NewFrame(64)
	e.Int32(0)
	e.Int64(0)
	e.Int32(8000)
	e.Int64(w.id)
	e.Buffer(w.pass)
	e.Bool(false)
	greeted := make(chan []byte, 1)
	go func() {
		_, _ = client.Write(e.Frame())
		head := make([]byte, 4+4+4+8+4+16)
		if _, err := io.ReadFull(client, head); err == nil {
			greeted <- head[12:]
		}
		_, _ = io.Copy(io.Discard, client)
	}()
	synctest.Wait()
	select {
	case id := <-greeted:
		d := wire.NewDecoder(id)
		w.id, w.pass = d.Int64(), d.Buffer()
	default: // it hangs, or was refused
	}
}

func (w *careless) send(op wire.Op, body func(*wire.Encoder)) {
	w.xid++
	e := wire.NewFrame(64)
	e.Int32(w.xid)
	e.Int32(int32(op))
	body(e)
	_ = w.nc.SetWriteDeadline(time.Now().Add(time.Millisecond))
	_, _ = w.nc.Write(e.Frame())
}

// view is all that a member has applied, as text.
func view(s *Server) string {
	var b strings.Builder
	s.Walk("/", func(p string, n tree.Info) bool {
		fmt.Fprintf(&b, "%s %q %+v %v %v\n", p, n.Data, n.Stat, n.ACL, n.Sequence)
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		fmt.Fprintf(&b, "%x %v\n", sess.id, s.tree.Owned(sess.id))
	}
	fmt.Fprintf(&b, "%d bytes, %d to reap, %d ephemerals", s.tree.DataSize, s.tree.Reapable(), s.tree.EphemeralCount())
	return b.String()
}

// Whatever happens between the members, each applies the same transactions in the same order, and in the end
// all have the same tree.
func TestTheMembersAgreeAfterAnyWeather(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) { agree(rt) })
	})
}

func agree(rt *rapid.T) {
	n := rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(rt, "members")
	w := newWeather(n, rapid.SampledFrom([]time.Duration{0, 0, 300 * time.Millisecond}).Draw(rt, "latency"))
	defer w.e.Close()
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		w.step(rt)
	}
	for _, f := range w.undo {
		f()
	}
	time.Sleep(30 * time.Second) // elections, and the end of sessions
	synctest.Wait()
	w.check(rt)
	for i := range w.clients {
		if w.clients[i].nc != nil {
			_ = w.clients[i].nc.Close()
		}
	}
}

// weather is an ensemble, clients that do not care how it fares, and what each member applied.
type weather struct {
	e       *Ensemble
	n       int
	clients []careless
	undo    map[string]func() // ends the mishaps that are under way
	history []int64           // as committed
	seen    [][]int64         // as applied by each member
}

func newWeather(n int, latency time.Duration) *weather {
	w := &weather{n: n, clients: make([]careless, 3), undo: map[string]func(){}, seen: make([][]int64, n)}
	w.e = NewEnsemble(n, func(i int) Config {
		return Config{Tick: time.Second, CommitLatency: latency, OnCommit: func(x Txn) {
			if x.First {
				w.history = append(w.history, x.Zxid)
			}
			w.seen[i] = append(w.seen[i], x.Zxid)
		}}
	}, EnsembleConfig{Leader: n - 1})
	return w
}

// step lets one client do something, or something happen to one member.
func (w *weather) step(rt *rapid.T) {
	i := rapid.IntRange(0, w.n-1).Draw(rt, "member")
	c := &w.clients[rapid.IntRange(0, len(w.clients)-1).Draw(rt, "client")]
	path := rapid.SampledFrom([]string{"/a", "/b", "/a/c", "/b/d"}).Draw(rt, "path")
	what := rapid.SampledFrom([]string{
		"connect", "connect", "create", "create", "create", "set", "delete", "multi", "close",
		"lag", "isolate", "freeze", "stop", "empty", "elect", "pass", "pass",
	}).Draw(rt, "what")
	if c.nc == nil {
		c.open(w.e.Member(i))
	}
	switch what {
	case "connect":
		c.open(w.e.Member(i))
	case "create":
		flags := rapid.SampledFrom([]int32{0, wire.FlagEphemeral, wire.FlagSequential, wire.FlagEphemeral | wire.FlagSequential}).Draw(rt, "flags")
		c.send(wire.OpCreate2, createBody(path, []byte(what), wire.OpenACL(), flags))
	case "set":
		c.send(wire.OpSetData, setBody(path, []byte{byte(i)}, -1))
	case "delete":
		c.send(wire.OpDelete, versionBody(path, -1))
	case "multi":
		c.send(wire.OpMulti, multiBody(part(wire.OpCreate, createBody(path, nil, wire.OpenACL(), 0)), part(wire.OpDelete, versionBody("/b", -1))))
	case "close":
		c.send(wire.OpClose, func(*wire.Encoder) {})
		c.id, c.pass = 0, nil
	case "elect":
		w.e.Elect(i)
	case "pass":
		time.Sleep(time.Duration(rapid.IntRange(1, 12000).Draw(rt, "ms")) * time.Millisecond)
	default:
		mishap(w.e, i, what, w.undo)
	}
}

// check requires that, now that all is calm, every member has the same tree, by way of the same history.
func (w *weather) check(rt *rapid.T) {
	require.True(rt, w.e.Quorate())
	want := view(w.e.Member(0))
	for i := range w.n {
		require.Equal(rt, want, view(w.e.Member(i)), "member %d", i)
		requireWithin(rt, w.history, w.seen[i])
	}
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	require.Empty(rt, w.e.log, "all have applied all")
	require.Empty(rt, w.e.pending)
}

// mishap lets something happen to a member, or takes it back.
func mishap(e *Ensemble, i int, what string, undo map[string]func()) {
	key := fmt.Sprint(what, i)
	if f := undo[key]; f != nil {
		delete(undo, key)
		f()
		return
	}
	s := e.Member(i)
	switch what {
	case "lag":
		if catchUp, ok := e.Lag(i); ok {
			undo[key] = catchUp
		}
	case "isolate":
		undo[key] = e.Isolate(i)
	case "freeze":
		s.Freeze()
		undo[key] = s.Thaw
	case "stop":
		s.Stop()
		undo[key] = func() { s.Restart(true) }
	case "empty":
		if e.n > 1 && e.Quorate() && e.Leader() != i {
			s.Restart(false)
		}
	}
}

// requireWithin checks that a member has applied transactions of the history only, in order and none twice. It may have got some as
// part of a snapshot.
func requireWithin(t require.TestingT, history, seen []int64) {
	at := 0
	for _, zxid := range seen {
		for at < len(history) && history[at] != zxid {
			at++
		}
		require.Less(t, at, len(history), "%x was applied out of order, or never committed", zxid)
		at++
	}
}
