package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// BenchmarkConsumers drains queues of several sizes with consumers that work for 2 ms on each element: one, eight goroutines of one
// object, and eight sessions; those also while 18 elements a second are put behind all others, and one after the other without
// work. docs/queue.md has the figures.
func BenchmarkConsumers(b *testing.B) {
	for _, n := range []int{1000, 4000, 16_000} {
		for name, c := range map[string]struct{ sessions, goroutines, puts int }{
			"one": {1, 1, 0}, "goroutines": {1, 8, 0}, "sessions": {8, 1, 0}, "sessions-puts": {8, 1, 18}, "in-turn": {8, 0, 18},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportMetric(0, "ns/op")
				sessions, requests := proving.BenchSessions(b, c.sessions+1)
				path := fmt.Sprintf("/consumers/%s-%d-%d", name, n, time.Now().UnixNano())
				p := zkqueue.New[int](sessions[c.sessions], path)
				fill(b, p, n)
				ctx, stop := context.WithCancel(context.Background())
				done := make(chan struct{})
				go func() {
					defer close(done)
					for i := 0; c.puts > 0 && ctx.Err() == nil; i++ {
						_ = p.Put(ctx, n+i, zkqueue.WithPriority(9))
						time.Sleep(time.Second / time.Duration(c.puts))
					}
				}()
				before := requests()
				qs := queues(sessions[:c.sessions], path)
				took := time.Duration(0)
				if c.goroutines == 0 {
					took = inTurn(b, n, qs)
				} else {
					took = drained(b, n, c.goroutines, qs...)
				}
				b.ReportMetric(float64(requests()-before)/float64(n), "requests/element")
				b.ReportMetric(float64(n)/took.Seconds(), "elements/s")
				stop()
				<-done
				_, err := p.Drain(context.Background(), n)
				require.NoError(b, err)
			})
		}
	}
}

// BenchmarkAFarConsumer takes elements, and puts each back behind all others, beside a process near the servers that does the same
// and never pauses. docs/queue.md has the figures.
func BenchmarkAFarConsumer(b *testing.B) {
	for _, backlog := range []int{10, 4000} {
		for _, goroutines := range []int{1, 8} {
			b.Run(fmt.Sprintf("%d/goroutines=%d", backlog, goroutines), func(b *testing.B) {
				proving.BenchFarAway(b, goroutines, func(b *testing.B, s *zksync.Session) func(context.Context) error {
					q := zkqueue.New[int](s, "/queue")
					fill(b, q, backlog/2) // there are two sessions
					return func(ctx context.Context) error {
						d, err := q.Receive(ctx)
						if err == nil {
							err = d.Ack(ctx)
						}
						if err == nil {
							err = q.Put(ctx, d.Value)
						}
						return err
					}
				})
			})
		}
	}
}

// inTurn has the objects receive and acknowledge one element each, one object after the other.
func inTurn(b *testing.B, n int, qs []*zkqueue.Queue[int]) time.Duration {
	start := time.Now()
	for i := range n {
		d, err := qs[i%len(qs)].Receive(context.Background())
		require.NoError(b, err)
		require.NoError(b, d.Ack(context.Background()))
	}
	return time.Since(start)
}
