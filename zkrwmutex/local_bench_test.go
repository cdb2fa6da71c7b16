package zkrwmutex_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// BenchmarkSharedReaders: an operation is a read lock and its unlock. Each of the goroutines has the next lock before it gives
// the last one up, so that they hold together. Every 10 ms their node is too old to join, and a lock waits for the server,
// which is in this process.
func BenchmarkSharedReaders(b *testing.B) {
	b.Run("form=lease", func(b *testing.B) {
		rw := shared(b)
		b.RunParallel(func(pb *testing.PB) {
			var last *zksync.Lease
			for pb.Next() {
				l, err := rw.RLockContext(context.Background())
				if err != nil || last != nil && last.Unlock() != nil {
					b.Error("a lock that was lost or refused", err)
					return
				}
				last = l
			}
			if last != nil {
				_ = last.Unlock()
			}
		})
	})
	b.Run("form=dropin", func(b *testing.B) {
		rw := shared(b)
		b.RunParallel(func(pb *testing.PB) {
			rw.RLock()
			for pb.Next() {
				rw.RLock()
				rw.RUnlock()
			}
			rw.RUnlock()
		})
	})
}

// BenchmarkSharedReadersFloor is the least that an operation of BenchmarkSharedReaders can cost as long as each hold has a
// lease and a context of its own, is dated, proves at its end that it was held until then, and is found by a
// loss: two allocations, two looks at the clock, and twice the lock of a list.
func BenchmarkSharedReadersFloor(b *testing.B) {
	type hold struct {
		prev, next *hold
		since      time.Time
		ctx        *[4]*hold
		_          [16]*hold // as large as a lease
	}
	var mu sync.Mutex
	var first hold
	var late atomic.Bool
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h := &hold{since: time.Now(), ctx: new([4]*hold)}
			mu.Lock()
			h.prev, h.next = &first, first.next
			if first.next = h; h.next != nil {
				h.next.prev = h
			}
			mu.Unlock()
			if time.Since(h.since) > time.Hour {
				late.Store(true)
			}
			mu.Lock()
			if h.prev.next = h.next; h.next != nil {
				h.next.prev = h.prev
			}
			mu.Unlock()
		}
	})
	require.False(b, late.Load())
}

func shared(b *testing.B) *zkrwmutex.RWMutex {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	srv := zktest.Start()
	go srv.Serve(l)
	b.Cleanup(srv.Close)
	s, err := zksync.Connect(context.Background(), l.Addr().String())
	require.NoError(b, err)
	b.Cleanup(func() { s.Close() })
	b.ReportAllocs()
	return zkrwmutex.New(s, "/shared")
}
