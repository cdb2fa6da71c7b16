package zkserver

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
	e := newFrame(64)
	e.int32(0)
	e.int64(0)
	e.int32(8000)
	e.int64(w.id)
	e.buffer(w.pass)
	e.bool(false)
	greeted := make(chan []byte, 1)
	go func() {
		_, _ = client.Write(e.frame())
		head := make([]byte, 4+4+4+8+4+16)
		if _, err := io.ReadFull(client, head); err == nil {
			greeted <- head[12:]
		}
		_, _ = io.Copy(io.Discard, client)
	}()
	synctest.Wait()
	select {
	case id := <-greeted:
		d := &decoder{b: id}
		w.id, w.pass = d.int64(), d.buffer()
	default: // it hangs, or was refused
	}
}

func (w *careless) send(op Op, body func(*encoder)) {
	w.xid++
	e := newFrame(64)
	e.int32(w.xid)
	e.int32(int32(op))
	body(e)
	_ = w.nc.SetWriteDeadline(time.Now().Add(time.Millisecond))
	_, _ = w.nc.Write(e.frame())
}

// view is all that a member has applied, as text.
func view(s *Server) string {
	var b strings.Builder
	s.Walk("/", func(p string, n NodeInfo) bool {
		fmt.Fprintf(&b, "%s %q %+v %v %v\n", p, n.Data, n.Stat, n.ACL, n.Sequence)
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		fmt.Fprintf(&b, "%x %v\n", sess.id, s.tree.ephemerals[sess.id].list())
	}
	fmt.Fprintf(&b, "%d bytes, %d containers, %d ephemerals", s.tree.dataSize, s.tree.containers.len(), s.tree.ephemeralCount())
	return b.String()
}

// Whatever happens between the members, each applies the same transactions in the same order, and in the end
// all have the same tree.
func TestTheMembersAgreeAfterAnyWeather(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) { agree(t, rt) })
	})
}

func agree(t *testing.T, rt *rapid.T) {
	n := rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(rt, "members")
	latency := rapid.SampledFrom([]time.Duration{0, 0, 300 * time.Millisecond}).Draw(rt, "latency")
	var history []int64        // as committed
	seen := make([][]int64, n) // as applied by each member
	e := NewEnsemble(n, func(i int) Config {
		return Config{Tick: time.Second, CommitLatency: latency, OnCommit: func(x Txn) {
			if x.First {
				history = append(history, x.Zxid)
			}
			seen[i] = append(seen[i], x.Zxid)
		}}
	}, EnsembleConfig{Leader: n - 1})
	defer e.Close()
	clients := make([]careless, 3)
	undo := map[string]func(){}
	paths := []string{"/a", "/b", "/a/c", "/b/d"}
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		i := rapid.IntRange(0, n-1).Draw(rt, "member")
		w := &clients[rapid.IntRange(0, len(clients)-1).Draw(rt, "client")]
		path := rapid.SampledFrom(paths).Draw(rt, "path")
		what := rapid.SampledFrom([]string{
			"connect", "connect", "create", "create", "create", "set", "delete", "multi", "close",
			"lag", "isolate", "freeze", "stop", "empty", "elect", "pass", "pass",
		}).Draw(rt, "what")
		if w.nc == nil {
			w.open(e.Member(i))
		}
		switch what {
		case "connect":
			w.open(e.Member(i))
		case "create":
			flags := rapid.SampledFrom([]int32{0, FlagEphemeral, FlagSequential, FlagEphemeral | FlagSequential}).Draw(rt, "flags")
			w.send(OpCreate2, createBody(path, []byte(what), OpenACL(), flags))
		case "set":
			w.send(OpSetData, setBody(path, []byte{byte(i)}, -1))
		case "delete":
			w.send(OpDelete, versionBody(path, -1))
		case "multi":
			w.send(OpMulti, multiBody(part(OpCreate, createBody(path, nil, OpenACL(), 0)), part(OpDelete, versionBody("/b", -1))))
		case "close":
			w.send(OpClose, func(*encoder) {})
			w.id, w.pass = 0, nil
		case "elect":
			e.Elect(i)
		case "pass":
			time.Sleep(time.Duration(rapid.IntRange(1, 12000).Draw(rt, "ms")) * time.Millisecond)
		default:
			mishap(e, i, what, undo)
		}
	}
	for _, f := range undo {
		f()
	}
	time.Sleep(30 * time.Second) // elections, and the end of sessions
	synctest.Wait()
	require.True(rt, e.Quorate())
	want := view(e.Member(0))
	for i := range n {
		require.Equal(rt, want, view(e.Member(i)), "member %d", i)
		requireWithin(rt, history, seen[i])
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	require.Empty(rt, e.log, "all have applied all")
	require.Empty(rt, e.pending)
	for i := range clients {
		if clients[i].nc != nil {
			_ = clients[i].nc.Close()
		}
	}
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
