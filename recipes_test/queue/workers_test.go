package queue_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// work is what a consumer does with each element.
const work = 2 * time.Millisecond

// fill puts the elements 0 to n-1, many at once.
func fill(t testing.TB, q *zkqueue.Queue[int], n int) {
	t.Helper()
	var all sync.WaitGroup
	for w := range min(n, 64) {
		all.Go(func() {
			for i := w; i < n; i += 64 {
				assert.NoError(t, q.Put(context.Background(), i))
			}
		})
	}
	all.Wait()
	require.False(t, t.Failed())
}

// drained has goroutines of each object receive, work and acknowledge until n elements are done, each once, and tells how long
// that took.
func drained(t testing.TB, n, goroutines int, qs ...*zkqueue.Queue[int]) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var all sync.WaitGroup
	var done atomic.Int64
	seen := make([]atomic.Int32, n)
	start := time.Now()
	var took atomic.Int64
	for _, q := range qs {
		for range goroutines {
			all.Go(func() {
				for {
					d, err := q.Receive(ctx)
					if err != nil {
						assert.ErrorIs(t, err, context.Canceled)
						return
					}
					time.Sleep(work)
					if d.Value < n {
						seen[d.Value].Add(1)
					}
					if !assert.NoError(t, d.Ack(context.Background())) || d.Value < n && done.Add(1) == int64(n) {
						took.Store(int64(time.Since(start)))
						stop()
						return
					}
				}
			})
		}
	}
	all.Wait()
	for i := range seen {
		require.EqualValues(t, 1, seen[i].Load(), "how often %d was delivered", i)
	}
	return time.Duration(took.Load())
}

// away are n sessions whose requests take a millisecond there and back.
func away(t *testing.T, v *proving.Env, n int) []*zksync.Session {
	all := make([]*zksync.Session, n)
	for i := range all {
		all[i] = proving.Calm(v)
		t.Cleanup(v.Server.Delay(all[i].ID(), time.Millisecond/2, time.Millisecond/2))
	}
	return all
}

func queues(all []*zksync.Session, path string) (qs []*zkqueue.Queue[int]) {
	for _, s := range all {
		qs = append(qs, zkqueue.New[int](s, path))
	}
	return qs
}

func TestEightConsumersAreFiveTimesAsFastAsOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const n = 1000
		sessions, p := away(t, v, 8), proving.Calm(v)
		play := func(name string, goroutines int, sessions ...*zksync.Session) (took time.Duration) {
			path := "/queues/" + name
			fill(t, zkqueue.New[int](p, path), n)
			requests := v.Counted(func() { took = drained(t, n, goroutines, queues(sessions, path)...) })
			t.Log(name, took, "requests:", float64(requests)/n)
			require.LessOrEqual(t, requests, 4*n, name)
			return took
		}
		one := play("one", 1, sessions[0])
		require.GreaterOrEqual(t, float64(one)/float64(play("goroutines", 8, sessions[0])), 5.0)
		require.GreaterOrEqual(t, float64(one)/float64(play("sessions", 1, sessions...)), 5.0)
	})
}
