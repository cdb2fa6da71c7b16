package zksync

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These measure what a Mutex costs inside one process, beside the requests. At the first bound of WithHandover a hand-over waits for
// one answer of the server, which is in this process.

// BenchmarkLocalHandover: an operation is a LockContext and an Unlock of one of 64 goroutines that
// share a Mutex. With so many, each Unlock hands over to a goroutine that waits.
func BenchmarkLocalHandover(b *testing.B) {
	m := NewMutex(benchSessions(b, benchServers(b), 1)[0], benchPath())
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			relock(b, m)
		}
	})
}

// BenchmarkRelockLingering: an operation is a LockContext and an Unlock of a Mutex that lingers, by the one goroutine
// that uses it.
func BenchmarkRelockLingering(b *testing.B) {
	m := NewMutex(benchSessions(b, benchServers(b), 1)[0], benchPath(), WithLinger(time.Minute))
	relock(b, m)
	b.ReportAllocs()
	for b.Loop() {
		relock(b, m)
	}
}

func relock(t testing.TB, m *Mutex) {
	l, err := m.LockContext(context.Background())
	if err != nil || l.Unlock() != nil {
		require.NoError(t, err)
		require.NoError(t, l.Err())
	}
}
