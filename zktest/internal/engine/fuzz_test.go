package engine

import (
	"bytes"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func FuzzDecodeCall(f *testing.F) {
	for _, c := range wellFormed {
		e := &wire.Encoder{}
		c.body(e)
		f.Add(int32(c.op), e.B)
		f.Add(int32(c.op), e.B[:len(e.B)/2])
	}
	for _, op := range allOps {
		f.Add(int32(op), []byte{0x7f, 0xff, 0xff, 0xff})
		f.Add(int32(op), bytes.Repeat([]byte{0xff}, 40))
		f.Add(int32(op), make([]byte, 40))
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		frame := bytes.Clone(body)
		release := releaseOf(t, wire.Series()[len(body)%len(wire.Series())])
		c := release.Decode(wire.Op(op), frame)
		clear(frame)
		wire.DecodeConnect(body)
		if c.Bad {
			require.Equal(t, wire.Call{Op: wire.Op(op), Bad: true}, c)
			return
		}
		require.Equal(t, release.Decode(wire.Op(op), bytes.Clone(body)), c, "a call keeps nothing of its frame")
		text, items := holds(reflect.ValueOf(c))
		require.LessOrEqual(t, text, 3*len(body), "a call holds no more than its frame; a byte that is no text is replaced by three")
		require.LessOrEqual(t, items, len(body)/4, "each string or record of a list takes four bytes at least")
		require.LessOrEqual(t, len(c.Paths()), 1+len(body)/4)
	})
}

// holds returns how many bytes of text a value holds, and how many elements its lists have.
func holds(v reflect.Value) (text, items int) {
	sum := func(w reflect.Value) {
		t, i := holds(w)
		text, items = text+t, items+i
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len(), 0
	case reflect.Pointer:
		if !v.IsNil() {
			return holds(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len(), 0
		}
		items = v.Len()
		for i := range v.Len() {
			sum(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			sum(v.Field(i))
		}
	}
	return text, items
}

// FuzzSession plays a script to a server: see script. Nothing may panic; what clients have left
// goes with their sessions; the tree stays consistent; and the server goes on serving others.
func FuzzSession(f *testing.F) {
	for _, seed := range scripts {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, play []byte) {
		if len(play) > 2000 {
			return // nothing new, only slower
		}
		synctest.Test(t, func(t *testing.T) {
			p := &script{rest: play}
			cfg := Config{Tick: time.Second}
			flags := p.next()
			if flags&1 == 1 {
				cfg.CommitLatency = 10 * time.Millisecond
			}
			cfg.ExtendedTypes = flags&2 == 2
			s := fuzzed(t, cfg, flags>>2)
			p.run(t, s)
			time.Sleep(time.Minute) // longer than a session lives unless it has asked for more with a second connect
			for _, left := range s.Sessions() {
				time.Sleep(time.Until(left.Expires) + time.Second) // its end takes as long as a commit
			}
			time.Sleep(50 * time.Millisecond) // what the reaper has begun at this very instant does, too
			requireNothingLeft(t, s)
			other := join(t, s, 10*time.Second)
			other.stat("/zookeeper") // the server still serves
		})
	})
}

// fuzzed returns a server on its own, or a member of an ensemble: a follower or the leader.
func fuzzed(t *testing.T, cfg Config, kind byte) *Server {
	if kind%3 == 0 {
		return newServer(t, cfg)
	}
	e := NewEnsemble(2, func(int) Config { return cfg }, EnsembleConfig{Leader: 1})
	t.Cleanup(e.Close)
	return e.Member(int(kind%3) - 1)
}

func requireNothingLeft(t *testing.T, s *Server) {
	require.Empty(t, s.Sessions())
	require.Zero(t, s.Watches())
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.conns)
	require.Empty(t, s.pending)
	require.True(t, s.out.Idle())
	require.Zero(t, s.watches.Count())
	require.Empty(t, s.watches.DataByWatcher())
	require.Empty(t, s.tree.Owners())
	require.NoError(t, s.tree.Check())
}
