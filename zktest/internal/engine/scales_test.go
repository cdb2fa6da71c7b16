package engine

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

const plenty = 100_000

var scales = []scaled{
	{"create under one parent", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		return func() { s.fill(n, "/n-", wire.FlagSequential, 0) }
	}, plenty},
	{"delete under one parent", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		paths := s.fill(n, "/n-", wire.FlagSequential, 0)
		return func() { s.clear(paths) }
	}, plenty},
	{"list what few are left of many", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		s.clear(s.fill(n, "/n-", wire.FlagSequential, 0))
		return func() {
			for range n {
				s.Children("/")
			}
		}
	}, plenty},
	{"create chains of 100 levels", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		return func() {
			for i := range n / 100 {
				path := fmt.Sprintf("/%d", i)
				for range 100 {
					s.make(path, 0, 0)
					path += "/x"
				}
			}
		}
	}, plenty},
	{"names with one hash", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		return func() {
			for i := range n {
				s.make("/"+collision(i), 0, 0)
			}
			for i := range n {
				s.Do(wire.Call{Op: wire.OpDelete, Path: "/" + collision(i), Version: -1}, 0)
			}
		}
	}, 30_000},
	{"close a session with ephemerals", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		id := s.joinSilently(time.Hour)
		s.fill(n, "/e-", wire.FlagSequential|wire.FlagEphemeral, id)
		return func() { require.True(t, s.Expire(id)) }
	}, plenty},
	{"close sessions while much is under way", func(t testing.TB, n int) func() {
		s := newServer(t, Config{CommitLatency: time.Hour, ManualClock: true})
		for range n {
			id := s.joinSilently(time.Hour)
			s.start(wire.Call{Op: wire.OpCreate, Path: "/e-", ACL: wire.OpenACL(), Flags: wire.FlagSequential | wire.FlagEphemeral}, id)
		}
		return func() {
			s.mu.Lock()
			for _, sess := range s.sessions {
				s.expire(sess, nil)
			}
			s.mu.Unlock()
			s.Advance(0)
			require.Empty(t, s.tree.Owners())
		}
	}, plenty},
	{"expire sessions one by one", func(t testing.TB, n int) func() {
		s := newServer(t, Config{ManualClock: true, Tick: time.Millisecond, MaxTimeout: time.Hour})
		for i := range n {
			s.joinSilently(time.Duration(i) * 2 * time.Millisecond)
		}
		return func() {
			s.Advance(time.Hour)
			require.Zero(t, len(s.Sessions()))
		}
	}, plenty},
	{"connect, ask and leave", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		return func() {
			ws := make([]*rawClient, n)
			for i := range ws {
				ws[i] = join(t, s, 40*time.Second)
			}
			for _, w := range ws {
				w.stat("/")
			}
			for _, w := range ws {
				w.do(wire.OpClose, nil)
				_ = w.nc.Close()
			}
		}
	}, 10_000},
	{"disconnect and heal each", func(t testing.TB, n int) func() {
		s := newServer(t, Config{MaxTimeout: time.Hour})
		ids := make([]int64, n)
		for i := range ids {
			ids[i] = join(t, s, time.Hour).id
		}
		return func() {
			for _, id := range ids {
				s.Block(id, true, true)()
				s.Disconnect(id)
			}
		}
	}, 10_000},
	{"watches of many on one node", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		conns := s.deaf(n)
		s.make("/n", 0, 0)
		return func() {
			s.mu.Lock()
			for _, c := range conns {
				s.watches.OnData("/n", c)
			}
			s.mu.Unlock()
			s.Do(wire.Call{Op: wire.OpSetData, Path: "/n", Version: -1}, 0)
			require.Equal(t, n, s.Notifications())
		}
	}, plenty},
	{"watches of one on many nodes", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		paths := s.fill(n, "/n-", wire.FlagSequential, 0)
		c := s.deaf(1)[0]
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			for range 2 {
				for _, p := range paths {
					s.watches.Add(p, modeRecursive, c)
				}
				s.watches.Drop(c)
			}
		}
	}, plenty},
	{"requests behind a hold", func(t testing.TB, n int) func() {
		release := make(chan struct{})
		s := newServer(t, Config{Intercept: func(r *Request) Verdict {
			if r.Path == "/" {
				return Verdict{Hold: true, Release: release}
			}
			return Verdict{}
		}})
		w := join(t, s, 40*time.Second)
		return func() {
			w.send(wire.OpExists, watchBody("/", false))
			for range n {
				w.send(wire.OpExists, watchBody("/zookeeper", false))
			}
			close(release)
			for range n + 1 {
				w.next()
			}
		}
	}, plenty},
	{"hand over from one to the next in line", func(t testing.TB, n int) func() {
		s := newServer(t, Config{})
		w := join(t, s, 40*time.Second)
		line := make([]string, n)
		for i := range line {
			line[i] = w.create("/n-", nil, wire.FlagSequential|wire.FlagEphemeral).body.Text()
			if i > 0 {
				w.do(wire.OpExists, watchBody(line[i-1], true))
			}
		}
		return func() {
			for _, path := range line {
				w.send(wire.OpDelete, versionBody(path, -1))
				if path != line[n-1] {
					w.requireEvent(wire.EventDeleted, path)
				}
				require.Equal(t, wire.CodeOK, w.next().code)
			}
		}
	}, plenty},
	{"remove empty containers", func(t testing.TB, n int) func() {
		s := newServer(t, Config{ManualClock: true})
		for i := range n {
			path := fmt.Sprintf("/c%d", i)
			s.Do(wire.Call{Op: wire.OpCreateContainer, Path: path, ACL: wire.OpenACL(), Flags: wire.FlagContainer}, 0)
			s.make(path+"/x", 0, 0)
			s.Do(wire.Call{Op: wire.OpDelete, Path: path + "/x", Version: -1}, 0)
		}
		return func() {
			s.Advance(2 * time.Minute)
			require.Zero(t, s.tree.Reapable())
		}
	}, plenty},
}

func (s *Server) make(path string, flags int32, owner int64) string {
	created, _ := s.Do(wire.Call{Op: wire.OpCreate, Path: path, ACL: wire.OpenACL(), Flags: flags}, owner)
	return created
}

func (s *Server) fill(n int, path string, flags int32, owner int64) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = s.make(path, flags, owner)
	}
	return paths
}

func (s *Server) clear(paths []string) {
	for _, p := range paths {
		s.Do(wire.Call{Op: wire.OpDelete, Path: p, Version: -1}, 0)
	}
}

// start submits a request and does not wait for its commit.
func (s *Server) start(c wire.Call, session int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order.submit(&request{call: c, session: session, internal: true, received: s.now()})
}

// joinSilently makes a session without a connection.
func (s *Server) joinSilently(timeout time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := &session{id: s.newSessionID(), timeout: timeout}
	s.sessions[sess.id] = sess
	s.touch(sess, timeout)
	return sess.id
}

// deaf makes connections that take what is sent to them and keep it.
func (s *Server) deaf(n int) []*conn {
	conns := make([]*conn, n)
	for i := range conns {
		client, _ := net.Pipe()
		conns[i] = s.newConn(client)
	}
	return conns
}

// collision returns the i-th of many names that have the same hash in a JVM.
func collision(i int) string {
	var b strings.Builder
	for range 17 {
		b.WriteString([]string{"Aa", "BB"}[i&1])
		i >>= 1
	}
	return b.String()
}
