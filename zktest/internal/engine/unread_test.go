package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// unread returns how many bytes wait for a session's client.
func unread(s *Server, id int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.sessions[id].conn; c != nil {
		return c.outBytes
	}
	return 0
}

// waiting returns how many bytes of requests a session's client has sent that are not handled.
func waiting(s *Server, id int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id].conn.in.bytes
}

func TestAPeerThatDoesNotReadItsRepliesIsNotServedAnyFurther(t *testing.T) {
	const size, asked = 100_000, 1000
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
		lazy, busy := join(t, s, 20*time.Second), join(t, s, 20*time.Second)
		busy.create("/n", make([]byte, size), 0)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range asked {
				lazy.send(wire.OpGetData, watchBody("/n", false))
			}
		}()
		synctest.Wait()
		require.Greater(t, unread(s, lazy.id), maxUnread)
		require.LessOrEqual(t, unread(s, lazy.id), maxUnread+size+1000, "one reply may be too much")
		require.Less(t, waiting(s, lazy.id), 100, "nor is more read than one request")
		require.Equal(t, wire.CodeOK, busy.do(wire.OpSetData, setBody("/n", make([]byte, size), 0)).code, "the others go on")

		for i := range asked { // who reads late has missed nothing
			r := lazy.next()
			require.EqualValues(t, i+1, r.xid)
			require.Len(t, r.body.Buffer(), size)
		}
		<-sent
		require.Equal(t, wire.CodeOK, lazy.do(wire.OpExists, watchBody("/n", false)).code)
		require.Zero(t, unread(s, lazy.id))
	})
}

// Such a peer's heartbeats are not read either, so it goes as one goes whose network is too slow.
func TestAPeerThatNeverReadsGoesWithItsSession(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
		lazy, other := join(t, s, 4*time.Second), join(t, s, 20*time.Second)
		other.create("/n", make([]byte, 1_000_000), 0)
		lazy.create("/e", nil, wire.FlagEphemeral)
		begin := time.Now()
		gone := make(chan time.Duration)
		go func() {
			for i := 0; ; i++ {
				e := wire.NewFrame(32)
				e.Int32(1)
				e.Int32(int32([]wire.Op{wire.OpGetData, wire.OpPing}[i%2]))
				if i%2 == 0 {
					watchBody("/n", false)(e)
				}
				if _, err := lazy.nc.Write(e.Frame()); err != nil {
					gone <- time.Since(begin)
					return
				}
			}
		}()
		time.Sleep(6 * time.Second)
		_, ok := s.Node("/e")
		require.False(t, ok)
		require.Len(t, s.Sessions(), 1)
		require.Equal(t, 15*time.Second, <-gone, "it expires after 5 s; 10 s later the server has waited long enough for it to read")
		require.Equal(t, 1, connections(s))
	})
}

func TestAPeerThatDoesNotReadItsEventsIsDropped(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		long := "/" + strings.Repeat("x", 100_000)
		lazy, keen, busy := join(t, s, 30*time.Second), join(t, s, 30*time.Second), join(t, s, 30*time.Second)
		for _, w := range []*rawClient{lazy, keen} {
			require.Equal(t, wire.CodeOK, w.do(wire.OpAddWatch, kindBody(long, modePersistent)).code)
		}
		go drain(keen.nc)
		require.Equal(t, wire.CodeOK, busy.create(long, nil, 0).code)
		for range maxQueued/len(long) + 2 {
			require.LessOrEqual(t, unread(s, lazy.id), maxQueued)
			require.Equal(t, wire.CodeOK, busy.do(wire.OpSetData, setBody(long, nil, -1)).code)
		}
		synctest.Wait()
		require.Equal(t, 2, connections(s), "the lazy one is cut off")
		require.Equal(t, 2, s.WatchesOn(long), "and the others keep their watches")
		require.Len(t, s.Sessions(), 3)
	})
}

func TestWhatWaitsInFrontOfAHoldIsBoundedAndHandledInOrder(t *testing.T) {
	const n, size = 40, 900_000
	release := make(chan struct{})
	cfg := Config{Tick: time.Second, Intercept: func(r *Request) Verdict {
		if r.Path == "/0" {
			return Verdict{Hold: true, Release: release}
		}
		return Verdict{}
	}}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		s := newServer(t, cfg)
		w := join(t, s, 20*time.Second)
		go func() {
			for i := range n {
				w.send(wire.OpCreate, createBody(fmt.Sprintf("/%d", i), make([]byte, size), wire.OpenACL(), 0))
			}
		}()
		synctest.Wait()
		require.Greater(t, waiting(s, w.id), maxInbox)
		require.LessOrEqual(t, waiting(s, w.id), maxInbox+size+1000)
		close(release)
		for i := range n {
			r := w.next()
			require.EqualValues(t, i+1, r.xid)
			require.Equal(t, wire.CodeOK, r.code)
		}
		require.Zero(t, waiting(s, w.id))
	})
}

func TestHeartbeatsPassAHoldHoweverMuchWaits(t *testing.T) {
	held := 0
	cfg := Config{Tick: time.Second, Intercept: func(r *Request) Verdict {
		if r.Op == wire.OpExists {
			held++
			return Verdict{Hold: true, Delay: time.Millisecond}
		}
		return Verdict{}
	}}
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		w := join(t, s, 20*time.Second)
		const n = 1000
		for range n {
			w.send(wire.OpExists, watchBody("/", false))
			w.send(wire.OpPing, nil)
		}
		for range n {
			require.Equal(t, wire.XidPing, w.next().xid, "the pings first")
		}
		begin := time.Now()
		for i := range n {
			require.EqualValues(t, 2*i+1, w.next().xid)
		}
		require.LessOrEqual(t, time.Since(begin), n*time.Millisecond)
		require.Equal(t, n, held, "each is judged once")
		_ = w.nc.Close()
		synctest.Wait()
		require.Zero(t, connections(s))
	})
}
