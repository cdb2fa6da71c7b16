package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// each gives each session a queue of its own.
func each(opts ...zksync.Option) (of func(s *zksync.Session) *zkqueue.Queue[int]) {
	var mu sync.Mutex
	qs := map[*zksync.Session]*zkqueue.Queue[int]{}
	return func(s *zksync.Session) *zkqueue.Queue[int] {
		mu.Lock()
		defer mu.Unlock()
		if qs[s] == nil {
			qs[s] = zkqueue.New[int](s, path, opts...)
		}
		return qs[s]
	}
}

// A call that does not wait for elements ends, however much quicker others are.
func TestAnyCallThatDoesNotWaitEndsBesideBusyConsumers(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(ctx context.Context, q *zkqueue.Queue[int]) error
	}{
		{"TryTake", func(ctx context.Context, q *zkqueue.Queue[int]) error { _, _, err := q.TryTake(ctx); return err }},
		{"Peek", func(ctx context.Context, q *zkqueue.Queue[int]) error { _, _, err := q.Peek(ctx); return err }},
		{"Drain", func(ctx context.Context, q *zkqueue.Queue[int]) error { _, err := q.Drain(ctx, 5); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				defer full(t, v, path, 10)()
				of := each()
				beside(t, v, 8,
					func(ctx context.Context, s *zksync.Session) error { _, err := of(s).Take(ctx); return err },
					func(ctx context.Context, s *zksync.Session) error { return c.call(ctx, of(s)) })
			})
		})
	}
}

func TestAnOfferEndsBesideABusyProducer(t *testing.T) {
	for _, goroutines := range []int{1, 8} {
		t.Run(fmt.Sprint(goroutines), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				bounded := zkqueue.WithCapacity(200)
				drain := zkqueue.New[int](proving.Calm(v), path, bounded)
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				defer all.Wait()
				defer stop()
				all.Go(func() {
					for ctx.Err() == nil {
						time.Sleep(10 * time.Millisecond)
						if n, err := drain.Len(ctx); err == nil && n > 100 {
							_, _ = drain.Drain(ctx, n)
						}
					}
				})
				of := each(bounded)
				beside(t, v, goroutines,
					func(ctx context.Context, s *zksync.Session) error { return of(s).Put(ctx, 1) },
					func(ctx context.Context, s *zksync.Session) error { _, err := of(s).Offer(ctx, 2); return err })
			})
		})
	}
}
