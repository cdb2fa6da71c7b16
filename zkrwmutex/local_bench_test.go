package zkrwmutex_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkserver"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
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

func shared(b *testing.B) *zkrwmutex.RWMutex {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	srv := zkserver.New(zkserver.Config{})
	go srv.Serve(l)
	b.Cleanup(srv.Close)
	s, err := zksync.Connect(context.Background(), l.Addr().String())
	require.NoError(b, err)
	b.Cleanup(func() { s.Close() })
	b.ReportAllocs()
	return zkrwmutex.New(s, "/shared")
}
