package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
)

// BenchmarkSize fills a queue, receives and acknowledges half of it one by one, lists what is left, and drains it. Everything
// is per element, so that a queue of ten times the elements shows the same numbers. docs/queue.md has them.
func BenchmarkSize(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			all, requests := proving.BenchSessions(b, 1)
			q := zkqueue.New[string](all[0], fmt.Sprintf("/size/%d-%d", n, time.Now().UnixNano()))
			measure := func(what string, of int, f func()) {
				before, start := requests(), time.Now()
				f()
				took := time.Since(start)
				b.ReportMetric(float64(took.Nanoseconds())/float64(of)/1000, what+"-us/element")
				if r := requests() - before; r > 0 {
					b.ReportMetric(float64(r)/float64(of), what+"-requests/element")
				}
			}
			ctx := context.Background()
			measure("put", n, func() {
				var all sync.WaitGroup
				for w := range 16 {
					all.Go(func() {
						for i := w; i < n; i += 16 {
							if err := q.Put(ctx, "an element of some thirty bytes"); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
			})
			before := proving.InUse()
			start := time.Now()
			d, err := q.Receive(ctx)
			require.NoError(b, err)
			b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "first-ms")
			b.ReportMetric(float64(proving.InUse()-before)/float64(n), "view-bytes/element")
			require.NoError(b, d.Ack(ctx))
			measure("receive+ack", n/2-1, func() {
				for range n/2 - 1 {
					d, err := q.Receive(ctx)
					require.NoError(b, err)
					require.NoError(b, d.Ack(ctx))
				}
			})
			measure("drain", n/2, func() {
				got, err := q.Drain(ctx, n)
				require.NoError(b, err)
				require.Len(b, got, n/2)
			})
		})
	}
}
