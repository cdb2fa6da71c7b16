package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// beside has a near session call never without a pause, in so many goroutines, and checks that each of 10 calls of a session that
// is 40 ms away ends within ten seconds. The requests of the near one take a millisecond.
func beside(t *testing.T, v *proving.Env, goroutines int, near, far func(ctx context.Context, s *zksync.Session) error) {
	t.Helper()
	a, b := proving.Calm(v), proving.Calm(v)
	defer v.Server.Delay(a.ID(), time.Millisecond/2, time.Millisecond/2)()
	defer v.Server.Delay(b.ID(), 20*time.Millisecond, 20*time.Millisecond)()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var busy sync.WaitGroup
	for range goroutines {
		busy.Go(func() {
			for ctx.Err() == nil {
				if err := near(ctx, a); ctx.Err() == nil && !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	longest := time.Duration(0)
	for i := range 10 {
		start := time.Now()
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := far(ctx, b)
		cancel()
		require.NoError(t, err, "call %d of the far one", i)
		longest = max(longest, time.Since(start))
	}
	t.Log("the longest call took", longest)
	stop()
	busy.Wait()
}

// full keeps a queue filled with n elements, and has one session put what both take.
func full(t *testing.T, v *proving.Env, path string, n int) (stop func()) {
	s := proving.Calm(v)
	q := zkqueue.New[int](s, path)
	fill(t, q, n)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for i := n; ctx.Err() == nil; i++ {
			if l, err := q.Len(ctx); err == nil && l < n {
				for range n - l {
					_ = q.Put(ctx, i)
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	return func() { cancel(); all.Wait() }
}

func TestAFarConsumerGetsItsShareBesideAnyBusyOne(t *testing.T) {
	for _, c := range []struct {
		backlog, goroutines int
		take                bool
	}{{1, 1, true}, {1, 8, false}, {10, 1, false}, {100, 8, true}, {3000, 1, true}, {3000, 8, false}} {
		t.Run(fmt.Sprintf("backlog=%d/goroutines=%d/take=%v", c.backlog, c.goroutines, c.take), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				defer full(t, v, path, c.backlog)()
				var mu sync.Mutex
				qs := map[*zksync.Session]*zkqueue.Queue[int]{}
				next := func(ctx context.Context, s *zksync.Session) error {
					mu.Lock()
					q := qs[s]
					if q == nil {
						q = zkqueue.New[int](s, path)
						qs[s] = q
					}
					mu.Unlock()
					if c.take {
						_, err := q.Take(ctx)
						return err
					}
					d, err := q.Receive(ctx)
					if err == nil {
						err = d.Ack(context.WithoutCancel(ctx))
					}
					return err
				}
				beside(t, v, c.goroutines, next, next)
			})
		})
	}
}

func TestAFarConsumerGetsElementsOfABacklogBesideANearOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const n = 4000
		a, b := proving.Calm(v), proving.Calm(v)
		fill(t, zkqueue.New[int](proving.Calm(v), path), n)
		defer v.Server.Delay(a.ID(), time.Millisecond/2, time.Millisecond/2)()
		defer v.Server.Delay(b.ID(), 20*time.Millisecond, 20*time.Millisecond)()
		var got [2]int
		var both sync.WaitGroup
		for i, s := range []*zksync.Session{a, b} {
			both.Go(func() {
				q := zkqueue.New[int](s, path)
				for ok := true; ok; got[i]++ {
					var err error
					_, ok, err = q.TryTake(t.Context())
					assert.NoError(t, err)
				}
			})
		}
		both.Wait()
		t.Log("near and far:", got)
		require.Equal(t, n, got[0]+got[1]-2, "each once")
		require.Greater(t, got[1], 8, "what the far one got of about 100 that it could take meanwhile")
	})
}

func TestAFarProducerOfABoundedQueueGetsItsShareBesideABusyOne(t *testing.T) {
	for _, c := range []struct {
		name       string
		goroutines int
		full       bool
		near       func(ctx context.Context, q *zkqueue.Queue[int]) error
	}{
		{"half empty", 1, false, func(ctx context.Context, q *zkqueue.Queue[int]) error { return q.Put(ctx, 1) }},
		{"half empty, eight", 8, false, func(ctx context.Context, q *zkqueue.Queue[int]) error { return q.Put(ctx, 1) }},
		{"full", 1, true, func(ctx context.Context, q *zkqueue.Queue[int]) error { return q.Put(ctx, 1) }},
		{"half empty, offer", 1, false, func(ctx context.Context, q *zkqueue.Queue[int]) error { _, err := q.Offer(ctx, 1); return err }},
		{"full, offer", 1, true, func(ctx context.Context, q *zkqueue.Queue[int]) error { _, err := q.Offer(ctx, 1); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				bounded := zkqueue.WithCapacity(200)
				drain := zkqueue.New[int](proving.Calm(v), path, bounded)
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				defer all.Wait()
				defer stop()
				all.Go(func() {
					for ctx.Err() == nil {
						if time.Sleep(10 * time.Millisecond); c.full {
							_, _, _ = drain.TryTake(ctx)
						} else if n, err := drain.Len(ctx); err == nil && n > 100 {
							_, _ = drain.Drain(ctx, n)
						}
					}
				})
				var mu sync.Mutex
				qs := map[*zksync.Session]*zkqueue.Queue[int]{}
				of := func(s *zksync.Session) *zkqueue.Queue[int] {
					mu.Lock()
					defer mu.Unlock()
					if qs[s] == nil {
						qs[s] = zkqueue.New[int](s, path, bounded)
					}
					return qs[s]
				}
				beside(t, v, c.goroutines,
					func(ctx context.Context, s *zksync.Session) error { return c.near(ctx, of(s)) },
					func(ctx context.Context, s *zksync.Session) error { return of(s).Put(ctx, 2) })
			})
		})
	}
}
