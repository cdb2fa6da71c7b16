package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		New(Config{}).Close()
	}
}

func BenchmarkCreateDelete(b *testing.B) {
	s := New(Config{})
	defer s.Close()
	w := join(b, s, time.Hour)
	for b.Loop() {
		w.create("/n", nil, wire.FlagEphemeral)
		w.do(wire.OpDelete, versionBody("/n", -1))
	}
}

// The cost of one create must not depend on how many siblings there are.
func BenchmarkCreateAmong(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(Config{})
			defer s.Close()
			for range n {
				s.Do(wire.Call{Op: wire.OpCreate, Path: "/n-", ACL: wire.OpenACL(), Flags: wire.FlagSequential}, 0)
			}
			for b.Loop() {
				path, _ := s.Do(wire.Call{Op: wire.OpCreate, Path: "/x-", ACL: wire.OpenACL(), Flags: wire.FlagSequential}, 0)
				s.Do(wire.Call{Op: wire.OpDelete, Path: path, Version: -1}, 0)
			}
		})
	}
}

// Renewing one session must not depend on how many others there are.
func BenchmarkTouchAmongSessions(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(Config{MaxTimeout: time.Hour})
			defer s.Close()
			s.mu.Lock()
			for range n {
				sess := &session{id: s.newSessionID(), timeout: time.Hour}
				s.sessions[sess.id] = sess
				s.touch(sess, time.Hour)
			}
			s.mu.Unlock()
			w := join(b, s, time.Hour)
			for b.Loop() {
				w.do(wire.OpExists, watchBody("/", false))
			}
		})
	}
}
