package zkmap_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
)

// BenchmarkSize fills a map, goes through it, keeps a copy, and clears it, once. Everything is per key, so that a map of
// ten times the keys shows the same numbers. docs/map.md has them.
func BenchmarkSize(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			all, requests := proving.BenchSessions(b, 1)
			m := zkmap.New[string, string](all[0], fmt.Sprintf("/size/%d-%d", n, time.Now().UnixNano()))
			measure := func(what string, f func()) {
				before, start := requests(), time.Now()
				f()
				took := time.Since(start)
				b.ReportMetric(float64(took.Nanoseconds())/float64(n)/1000, what+"-us/key")
				if r := requests() - before; r > 0 {
					b.ReportMetric(float64(r)/float64(n), what+"-requests/key")
				}
			}
			ctx := context.Background()
			measure("store", func() { fill(b, m, n) })
			measure("len", func() {
				got, err := m.Len(ctx)
				require.NoError(b, err)
				require.Equal(b, n, got)
			})
			measure("range", func() {
				told := 0
				require.NoError(b, m.Range(ctx, func(string, string) bool { told++; return true }))
				require.Equal(b, n, told)
			})
			var c *zkmap.Cache[string, string]
			before := proving.InUse()
			measure("cached", func() {
				var err error
				c, err = m.Cached(ctx)
				require.NoError(b, err)
			})
			require.Equal(b, n, c.Len())
			b.ReportMetric(float64(proving.InUse()-before)/float64(n), "cached-bytes/key")
			start := time.Now()
			for i := range n {
				_, ok := c.Load(sizeKey(i))
				require.True(b, ok)
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(n), "cached-load-ns")
			c.Close()
			measure("clear", func() { require.NoError(b, m.Clear(ctx)) })
			got, err := m.Len(ctx)
			require.NoError(b, err)
			require.Zero(b, got)
		})
	}
}

func sizeKey(i int) string { return fmt.Sprintf("customer-%07d", i) }

// fill stores from 64 goroutines.
func fill(b *testing.B, m *zkmap.Map[string, string], n int) {
	var all sync.WaitGroup
	for w := range 64 {
		all.Go(func() {
			for i := w; i < n; i += 64 {
				if err := m.Store(context.Background(), sizeKey(i), "a value of some thirty bytes"); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
