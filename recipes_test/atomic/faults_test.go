package atomic_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAcceptance141And142EveryFaultOfEveryRequestLeavesANumberExact(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		xs := numbers(v, 3)
		return func(name string) {
			ctx := context.Background()
			for i, x := range xs {
				n, err := x.Add(ctx, 1)
				require.NoError(t, err, name)
				require.EqualValues(t, i+1, n, name)
			}
			require.NoError(t, xs[0].Store(ctx, 10), name)
			old, err := xs[1].Swap(ctx, 20)
			require.NoError(t, err, name)
			require.EqualValues(t, 10, old, name)
			for i, want := range []bool{true, false} { // the second one finds what the first one wrote
				swapped, err := xs[2-i].CompareAndSwap(ctx, 20, 30)
				require.NoError(t, err, name)
				require.Equal(t, want, swapped, name)
			}
			n, err := xs[0].Add(ctx, -1)
			require.NoError(t, err, name)
			require.EqualValues(t, 29, n, name)
		}
	})
}

func TestAcceptance141EveryFaultOfEveryRequestLeavesAValueExact(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		var xs []*zkatomic.Value[string]
		for range 3 {
			xs = append(xs, zkatomic.NewValue[string](v.Session(), path))
		}
		return func(name string) {
			ctx := context.Background()
			require.NoError(t, xs[0].Store(ctx, "a"), name)
			old, ok, err := xs[1].Swap(ctx, "b")
			require.NoError(t, err, name)
			require.Equal(t, "a", old, name)
			require.True(t, ok, name)
			now, err := xs[2].Update(ctx, func(old string, ok bool) (string, error) { return old + "c", nil })
			require.NoError(t, err, name)
			require.Equal(t, "bc", now, name)
			require.NoError(t, xs[0].Delete(ctx), name)
			swapped, err := xs[1].CompareAndSwap(ctx, "bc", "d")
			require.NoError(t, err, name)
			require.False(t, swapped, name)
			// The function may first be given what this object knew.
			now, err = xs[2].Update(ctx, func(old string, ok bool) (string, error) { return old + "e", nil })
			require.NoError(t, err, name)
			require.Equal(t, "e", now, name)
		}
	})
}

// Twenty sessions add on three servers. Answers are lost, requests arrive twice or are lost, and some lie in the queue of a
// server while their session goes round the others. Each Add counts once.
func TestAcceptance142RandomFaultsOfAThousandAddsLeaveTheSumExact(t *testing.T) {
	for seed := range max(proving.Rounds(4), 1) {
		proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
			r := rand.New(rand.NewPCG(uint64(seed), 4))
			e.Server(2).Create("/atomics", nil, 0, 0)
			var xs []*zkatomic.Int64
			for i := range 20 {
				xs = append(xs, zkatomic.NewInt64(e.SessionAt(t, i%3, zksync.WithTimeout(30*time.Second)), path))
			}
			var mu sync.Mutex
			late := 0
			calm := e.InterceptFunc(func(q *zktest.Request) (v zktest.Verdict) {
				if !proving.Counts(q) {
					return v
				}
				mu.Lock()
				defer mu.Unlock()
				switch r.IntN(40) {
				case 0:
					v.Fate = zktest.LoseReply
				case 1:
					v.Fate = zktest.LoseRequest
				case 2:
					v.Fate = zktest.Duplicate
				case 3:
					late++
					v.Queued, v.Delay = true, time.Duration(1+r.IntN(2000))*time.Millisecond
					for range 1 + r.IntN(4) {
						after := time.Duration(r.IntN(1500)) * time.Millisecond
						time.AfterFunc(after, func() { e.Disconnect(q.Session) })
					}
				}
				return v
			})
			require.Len(t, adds(t, xs, 50), 1000, "seed %d: all results differ", seed)
			calm()
			time.Sleep(time.Minute)
			sum, err := xs[0].Add(t.Context(), 0)
			require.NoError(t, err)
			require.EqualValues(t, 1000, sum, "seed %d", seed)
			require.Positive(t, late)
		})
	}
}

// The request is applied after its session has come back to its server: by then the number has been changed by others.
func TestAcceptance142AnAddThatArrivesLateCountsOnce(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		e.Server(2).Create("/atomics", nil, 0, 0)
		s := e.SessionAt(t, 0, zksync.WithTimeout(30*time.Second))
		x, other := zkatomic.NewInt64(s, path), zkatomic.NewInt64(e.SessionAt(t, 1, zksync.WithTimeout(30*time.Second)), path)
		for _, n := range []*zkatomic.Int64{x, other} {
			_, err := n.Add(t.Context(), 1)
			require.NoError(t, err)
		}
		late := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
		result := make(chan int64, 1)
		go func() {
			n, err := x.Add(context.Background(), 1)
			assert.NoError(t, err)
			result <- n
		}()
		synctest.Wait()
		require.Equal(t, 1, late.Held())
		e.Disconnect(s.ID())
		require.EqualValues(t, 3, <-result)
		for range 3 {
			_, err := other.Add(t.Context(), 1)
			require.NoError(t, err)
		}
		for e.At(s.ID()) != 0 {
			e.Disconnect(s.ID())
			time.Sleep(100 * time.Millisecond)
		}
		late.Release()
		time.Sleep(time.Second)
		n, err := other.Add(t.Context(), 0)
		require.NoError(t, err)
		require.EqualValues(t, 6, n)
	})
}
