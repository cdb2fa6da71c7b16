package atomic_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Older versions made no gate, and a process may die while it is closed. Whoever finds it so opens it.
func TestAGateThatNobodyOpensIsOpenedByTheNextChange(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		x := zkatomic.NewInt64(proving.Calm(v), path)
		add := func() { _, err := x.Add(t.Context(), 1); require.NoError(t, err) }
		add()
		for range 2 {
			v.Remove(int64s + "/open")
			v.CostsAtMost(9, add, "refused; it queues, where it opens the gate and makes the change")
			require.True(t, v.Exists(int64s+"/open"))
			v.Costs(1, add)
		}
	})
}

// busy changes the value all the time, a millisecond from the servers, and returns the longest of its calls.
func busy(t *testing.T, v *proving.Env, ctx context.Context) func() time.Duration {
	s := v.Session()
	x := zkatomic.NewValue[int](s, path)
	v.Server.Delay(s.ID(), time.Millisecond/2, time.Millisecond/2)
	most, done := time.Duration(0), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			start := time.Now()
			assert.NoError(t, x.Store(context.Background(), 1))
			most = max(most, time.Since(start))
		}
	}()
	return func() time.Duration { <-done; return most }
}

func far(v *proving.Env) (*zksync.Session, *zkatomic.Value[int]) {
	s := v.Session(zksync.WithTimeout(10 * time.Second))
	v.Server.Delay(s.ID(), 20*time.Millisecond, 20*time.Millisecond)
	return s, zkatomic.NewValue[int](s, path)
}

// A function may wait for another call, which waits for its turn.
func TestAnyFunctionThatTakesLongLosesItsTurn(t *testing.T) {
	for name, f := range map[string]func(x *zkatomic.Value[int]) error{
		"it sleeps":         func(*zkatomic.Value[int]) error { time.Sleep(2 * time.Second); return nil },
		"it stores a value": func(x *zkatomic.Value[int]) error { return x.Store(context.Background(), 7) },
		"it deletes it":     func(x *zkatomic.Value[int]) error { return x.Delete(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, stop := context.WithTimeout(t.Context(), 8*time.Second)
				defer stop()
				longest := busy(t, v, ctx)
				s, x := far(v)
				inner := zkatomic.NewValue[int](s, path)
				calls := 0
				_, err := x.Update(t.Context(), func(old int, _ bool) (int, error) {
					if calls++; calls < 3 || ctx.Err() != nil { // then it has its turn; at last it is alone
						return old + 1, nil
					}
					return old + 1, f(inner)
				})
				require.NoError(t, err)
				require.Greater(t, calls, 3)
				require.Less(t, longest(), 1200*time.Millisecond)
			})
		})
	}
}

func TestAnyCallThatEndsInItsTurnLeavesTheGateOpen(t *testing.T) {
	for name, end := range map[string]func(v *proving.Env, s *zksync.Session, cancel func()){
		"the context ends": func(_ *proving.Env, _ *zksync.Session, cancel func()) { cancel() },
		"the session dies": func(v *proving.Env, s *zksync.Session, _ func()) { v.Server.Expire(s.ID()) },
		"the process is cut off": func(v *proving.Env, s *zksync.Session, cancel func()) {
			v.Server.Partition(s.ID())
			cancel()
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, stop := context.WithCancel(t.Context())
				longest := busy(t, v, ctx)
				s, x := far(v)
				inTurn, cancel := context.WithCancel(t.Context())
				var closed atomic.Bool
				v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
					if q.Session == s.ID() && q.Op == zktest.GetData && !v.Exists(values+"/open") && !closed.Swap(true) {
						go end(v, s, cancel)
					}
					return verdict
				})
				_, err := x.Update(inTurn, func(old int, _ bool) (int, error) { return old + 1, nil })
				if name == "the session dies" { // perhaps with its change under way
					require.True(t, err == nil || zksync.Ambiguous(err), "%v", err)
				} else {
					require.ErrorIs(t, err, context.Canceled)
				}
				require.True(t, closed.Load())
				time.Sleep(15 * time.Second)
				stop()
				require.Less(t, longest(), 11*time.Second)
				require.True(t, v.Exists(values+"/open"))
			})
		})
	}
}

// A Store does not depend on the value, so no change of others makes the servers refuse it.
func TestAStoreIsNotRefusedBecauseOthersChangeTheValue(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		a, b := proving.Calm(v), proving.Calm(v)
		n, m := zkatomic.NewInt64(a, path), zkatomic.NewInt64(b, path)
		x, y := zkatomic.NewValue[int](a, path+"/value"), zkatomic.NewValue[int](b, path+"/value")
		for i := range 3 {
			cost := func(f func() error) {
				if i == 0 { // the first use
					require.NoError(t, f())
					return
				}
				v.Costs(1, func() { require.NoError(t, f()) })
			}
			cost(func() error { return n.Store(ctx, int64(i)) })
			cost(func() error { return m.Store(ctx, int64(i)) })
			cost(func() error { return x.Store(ctx, i) })
			cost(func() error { return y.Store(ctx, i) })
		}
		v.Flush()
		require.NoError(t, x.Delete(ctx))
		v.Costs(3, func() { require.NoError(t, y.Store(ctx, 7)) }, "there is none, which it did not know")
		v.Flush()
		got, ok, err := x.Load(ctx)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 7, got)
		sum, err := n.Add(ctx, 1)
		require.NoError(t, err)
		require.EqualValues(t, 3, sum, "it knows that its own is not the last one")
	})
}

func TestAChangeToTheSameValueWakesNobody(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		x := zkatomic.NewValue[int](proving.Calm(v), path)
		require.NoError(t, x.Store(ctx, 5))
		version := func() int64 {
			for s, err := range zkatomic.NewValue[int](v.Session(), path).Watch(ctx) {
				require.NoError(t, err)
				return s.Version
			}
			return 0
		}
		before := version()
		v.Costs(1, func() {
			got, err := x.Update(ctx, func(old int, _ bool) (int, error) { return old, nil })
			require.NoError(t, err)
			require.Equal(t, 5, got)
		})
		swapped, err := x.CompareAndSwap(ctx, 5, 5)
		require.NoError(t, err)
		require.True(t, swapped)
		require.Equal(t, before, version())
	})
}
