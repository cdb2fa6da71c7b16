package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// failing is an interceptor that fails every request of one kind.
func failing(op wire.Op, v Verdict) func(*Request) Verdict {
	v.Fate, v.Code = FateFailed, wire.CodeNoAuth
	return func(q *Request) Verdict {
		if q.Op == op {
			return v
		}
		return Verdict{}
	}
}

func TestARequestThatARuleFailsIsAnsweredBehindThoseBeforeIt(t *testing.T) {
	t.Parallel()
	cfg := Config{CommitLatency: 100 * time.Millisecond, Intercept: failing(wire.OpExists, Verdict{})}
	for name, start := range map[string]func(t *testing.T) *Server{
		"alone": func(t *testing.T) *Server { return newServer(t, cfg) },
		"follower": func(t *testing.T) *Server {
			e := NewEnsemble(3, func(int) Config { return cfg }, EnsembleConfig{Leader: 1})
			t.Cleanup(e.Close)
			return e.Member(0)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := join(t, start(t), 10*time.Second)
			began := time.Now()
			w.send(wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0))
			w.send(wire.OpExists, watchBody("/", false))
			require.Equal(t, int32(1), w.next().xid, name)
			r := w.next()
			require.Equal(t, int32(2), r.xid)
			require.Equal(t, wire.CodeNoAuth, r.code)
			require.Empty(t, r.body.Rest())
			require.Equal(t, 100*time.Millisecond, time.Since(began))
			require.Equal(t, wire.CodeNoAuth, w.do(wire.OpExists, watchBody("/", false)).code)
			require.Equal(t, 100*time.Millisecond, time.Since(began), "nothing is in front of it")
		})
	}
}

func TestAnyAnswerCanBeKeptBack(t *testing.T) {
	t.Parallel()
	late := Verdict{ReplyDelay: time.Second}
	all := func(*Request) Verdict { return late }
	for name, c := range map[string]struct {
		op        wire.Op
		body      func(*wire.Encoder)
		intercept func(*Request) Verdict
	}{
		"a read":     {wire.OpExists, watchBody("/", false), all},
		"a write":    {wire.OpSetData, setBody("/", nil, -1), all},
		"a ping":     {wire.OpPing, nil, all},
		"an error":   {wire.OpExists, watchBody("/", false), failing(wire.OpExists, late)},
		"a setAuth":  {wire.OpAuth, func(e *wire.Encoder) { e.Int32(0); e.Text("digest"); e.Buffer([]byte("a:b")) }, all},
		"a token":    {wire.OpSASL, func(e *wire.Encoder) { e.Buffer([]byte("x")) }, all},
		"no such op": {99, nil, all},
	} {
		began := time.Duration(0)
		inBubble(t, Config{Intercept: func(q *Request) Verdict {
			if q.Op == wire.OpConnect {
				return Verdict{}
			}
			return c.intercept(q)
		}}, func(t *testing.T, s *Server) {
			w := join(t, s, 10*time.Second)
			start := time.Now()
			w.send(c.op, c.body)
			w.next()
			began = time.Since(start)
		})
		require.Equal(t, time.Second, began, name)
	}
}

func TestARefusedConnectIsAnsweredInFull(t *testing.T) {
	t.Parallel()
	inBubble(t, Config{Intercept: failing(wire.OpConnect, Verdict{})}, func(t *testing.T, s *Server) {
		w := dial(t, s)
		w.connect(10*time.Second, 0, nil, 0) // reads the read-only flag, too
		require.Zero(t, w.id)
		w.requireClosed()
	})
}
