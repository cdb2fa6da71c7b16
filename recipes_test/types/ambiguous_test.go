package types_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// repeated are changes that are sent again when the answer is lost. The function does what comes before, and returns the change.
var repeated = map[string]func(t *testing.T, s *zksync.Session) (change func(context.Context) error){
	"flight": func(t *testing.T, s *zksync.Session) func(context.Context) error {
		f := zkflight.New[int](s, "/it")
		_, err, _ := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 1, nil })
		require.NoError(t, err)
		return func(ctx context.Context) error { return f.Forget(ctx, "k") }
	},
	"semaphore": func(t *testing.T, s *zksync.Session) func(context.Context) error {
		w := zksemaphore.NewWeighted(s, "/it", 2)
		require.NoError(t, w.Resize(t.Context(), 3))
		return func(ctx context.Context) error { return w.Resize(ctx, 4) }
	},
	"phaser": func(t *testing.T, s *zksync.Session) func(context.Context) error {
		p := zkphaser.New(s, "/it")
		_, err := p.Register(t.Context())
		require.NoError(t, err)
		return p.ForceTermination
	},
	"latch": func(t *testing.T, s *zksync.Session) func(context.Context) error {
		l := zklatch.New(s, "/it", 3)
		require.NoError(t, l.CountDown(t.Context()))
		return l.CountDown
	},
	"gate to close": func(t *testing.T, s *zksync.Session) func(context.Context) error {
		g := zklatch.NewGate(s, "/it")
		require.NoError(t, g.Close(t.Context()))
		require.NoError(t, g.Open(t.Context()))
		return g.Close
	},
	"gate to open": func(t *testing.T, s *zksync.Session) func(context.Context) error {
		g := zklatch.NewGate(s, "/it")
		require.NoError(t, g.Close(t.Context()))
		return g.Open
	},
	"barrier": func(t *testing.T, s *zksync.Session) func(context.Context) error {
		b := zkbarrier.NewBarrier(s, "/it", 2)
		require.NoError(t, b.Reset(t.Context()))
		return b.Reset
	},
}

// The servers make the change, and the caller hears nothing of that before its context ends: before the session is lost, or after.
func TestAChangeWhoseAnswerIsLostIsAmbiguous(t *testing.T) {
	for name, prepare := range repeated {
		for _, limit := range []time.Duration{2 * time.Second, time.Minute} {
			t.Run(name+" "+limit.String(), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					change := prepare(t, v.Session())
					allow := func() {}
					v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
						if q.Op != zktest.Multi || name == "gate to open" && len(q.Paths) == 1 { // that is the mark
							return zktest.Verdict{}
						}
						allow = v.Server.Refuse()
						return zktest.Verdict{Fate: zktest.LoseReply}
					})
					var changes atomic.Int32
					v.Server.OnCommit(func(zktest.Txn) { changes.Add(1) })
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					err := change(ctx)
					allow()
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.True(t, zksync.Ambiguous(err), err)
					require.NotZero(t, changes.Load())
				})
			})
		}
	}
}

// The change was made by a request whose answer was lost. The next one is refused because of that, and then no server answers: the
// caller is not told that nothing was changed.
func TestAChangeThatOnlyARefusalShowsIsAmbiguous(t *testing.T) {
	for _, name := range []string{"semaphore", "phaser", "latch", "barrier"} {
		for _, limit := range []time.Duration{2 * time.Second, time.Minute} {
			t.Run(name+" "+limit.String(), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					change := repeated[name](t, v.Session())
					requests := 0
					heal := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
						if q.Op == zktest.Multi {
							requests++
						}
						switch {
						case requests == 1 && q.Op == zktest.Multi:
							return zktest.Verdict{Fate: zktest.LoseReply}
						case requests >= 2 && q.Op != zktest.Multi && q.Op != zktest.Connect && q.Op != zktest.Ping:
							return zktest.Verdict{Fate: zktest.LoseRequest}
						}
						return zktest.Verdict{}
					})
					var changes atomic.Int32
					v.Server.OnCommit(func(zktest.Txn) { changes.Add(1) })
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					err := change(ctx)
					heal()
					require.NotZero(t, changes.Load())
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.True(t, zksync.Ambiguous(err), err)
				})
			})
		}
	}
}
