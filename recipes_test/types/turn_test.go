package types_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// busy has processes near the servers call something without a pause, until ctx ends. It returns how many calls there were, and
// how long the longest took; longest waits for all of them.
func busy(ctx context.Context, t *testing.T, v *proving.Env, near user, n int, away time.Duration) (made *atomic.Int64, longest func() time.Duration) {
	made = new(atomic.Int64)
	var all sync.WaitGroup
	var mu sync.Mutex
	most := time.Duration(0)
	for range n {
		s := v.Session()
		use := near(s)
		v.Server.Delay(s.ID(), away, away)
		all.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				err := use(ctx)
				made.Add(1)
				if ctx.Err() == nil {
					assert.NoError(t, err)
					mu.Lock()
					most = max(most, time.Since(start))
					mu.Unlock()
				}
			}
		})
	}
	time.Sleep(time.Second)
	return made, func() time.Duration { all.Wait(); return most }
}

// A process has the turn, and no other may change the meeting point. Whatever becomes of it, the others go on.
func TestAnyCallThatEndsInItsTurnKeepsNobodyWaiting(t *testing.T) {
	ends := map[string]func(v *proving.Env, s *zksync.Session, gate string, cancel func()){
		"the context ends": func(_ *proving.Env, _ *zksync.Session, _ string, cancel func()) { cancel() },
		"the session dies": func(v *proving.Env, s *zksync.Session, _ string, _ func()) { v.Server.Expire(s.ID()) },
		"the process is cut off": func(v *proving.Env, s *zksync.Session, _ string, cancel func()) {
			v.Server.Partition(s.ID())
			cancel()
		},
		"the connection is lost": func(v *proving.Env, s *zksync.Session, _ string, cancel func()) {
			v.Server.Disconnect(s.ID())
			cancel()
		},
		"somebody deletes the gate": func(v *proving.Env, _ *zksync.Session, gate string, _ func()) { v.Server.DeleteAll(gate) },
		"somebody deletes the place": func(v *proving.Env, _ *zksync.Session, gate string, _ func()) {
			for _, dir := range []string{gate + "s", strings.TrimSuffix(gate, "turn") + "members"} {
				for _, n := range v.Server.Children(dir) {
					if strings.Contains(n, "-lock-") {
						v.Server.DeleteAll(dir + "/" + n)
					}
				}
			}
		},
	}
	for kind, c := range map[string]struct {
		near  user
		nears int
		far   user
		gate  string
	}{
		"wait group":     {members(1, 0), 1, members(0, 1), "/far/round/turn"},
		"phaser":         {arrives(), 1, registers(), "/far/turn"},
		"barrier":        {meets(1), 1, meets(1), "/far/turn"},
		"double barrier": {outlives(double(2)), 5, double(2), "/far/turn"},
	} {
		for name, end := range ends {
			t.Run(kind+", "+name, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					_, longest := busy(ctx, t, v, c.near, c.nears, 5*time.Millisecond)
					s := v.Session()
					use := c.far(s)
					v.Server.Delay(s.ID(), 100*time.Millisecond, 100*time.Millisecond)
					inTurn, cancel := context.WithTimeout(ctx, 12*time.Second)
					defer cancel()
					var had atomic.Bool
					v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
						if q.Session == s.ID() && q.Op != zktest.Multi && v.Exists(c.gate) && !had.Swap(true) {
							go end(v, s, c.gate, cancel)
						}
						return verdict
					})
					for !had.Load() && inTurn.Err() == nil { // a call may be lucky
						_ = use(inTurn)
					}
					require.True(t, had.Load())
					time.Sleep(s.Timeout() + 2*time.Second)
					stop()
					require.Less(t, longest(), s.Timeout()+time.Second)
					v.Server.Wait(t, "the end of the last turn", func() bool { return !v.Exists(c.gate) })
				})
			})
		}
	}
}

// outlives is u for a party of which another one may die inside: Leave says so.
func outlives(u user) user {
	return func(s *zksync.Session) func(context.Context) error {
		use := u(s)
		return func(ctx context.Context) error {
			err := use(ctx)
			if broken := new(zkbarrier.BrokenError); errors.As(err, &broken) && broken.Why == zkbarrier.Died {
				return nil
			}
			return err
		}
	}
}

// A gate that is there although nobody has the turn is taken by the next that is refused.
func TestAGateThatIsLeftOverIsOpened(t *testing.T) {
	for kind, c := range map[string]struct {
		use  user
		gate string
	}{
		"wait group":     {members(2, 1), "/far/round/turn"},
		"phaser":         {arrives(), "/far/turn"},
		"barrier":        {meets(1), "/far/turn"},
		"double barrier": {double(1), "/far/turn"},
	} {
		t.Run(kind, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				use := c.use(v.Session())
				require.NoError(t, use(t.Context()))
				v.Server.Create(c.gate, nil, 0, 0)
				start := time.Now()
				require.NoError(t, use(t.Context()))
				require.Less(t, time.Since(start), time.Second)
				v.Server.Wait(t, "the gate", func() bool { return !v.Exists(c.gate) })
			})
		})
	}
}

// Each has a record of its own, so nobody is in the way of another, except at the beginning and the end of a round. Those that begin
// at the same instant may queue, once.
func TestAnyInNobodysWayDoNotQueue(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		made, _ := busy(ctx, t, v, members(1, 1), 20, time.Millisecond/2)
		before, requests := made.Load(), v.Server.Requests()
		require.Greater(t, before, int64(20*350), "none waits for a timeout")
		time.Sleep(time.Second / 2)
		calls := 2 * (made.Load() - before)
		require.Greater(t, calls, int64(20*450), "each call waits for nothing but its own request")
		require.Less(t, float64(v.Server.Requests()-requests), 1.1*float64(calls))
	})
}
