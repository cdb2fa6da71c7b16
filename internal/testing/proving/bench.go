package proving

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// BenchSessions opens n sessions that end with the benchmark, on an in-process server, or on the real servers if
// there are any. requests counts what the in-process server was asked; on real servers it stays zero.
func BenchSessions(b *testing.B, n int) (all []*zksync.Session, requests func() int) {
	b.Helper()
	servers := os.Getenv(ensemble.ServersEnv)
	if servers == "" {
		srv := zktest.Run(b)
		for range n {
			all = append(all, srv.Session(b))
		}
		return all, srv.Requests
	}
	for range n {
		s, err := zksync.Connect(context.Background(), servers, zksync.WithTimeout(30*time.Second))
		require.NoError(b, err)
		b.Cleanup(func() { _ = s.Close() })
		all = append(all, s)
	}
	return all, func() int { return 0 }
}

// InUse is the memory that heap objects take, without garbage.
func InUse() int64 {
	runtime.GC()
	runtime.GC() // what a pool held on to at the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
