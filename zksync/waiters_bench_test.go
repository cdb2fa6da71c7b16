package zksync

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// Serve runs an in-process server on a listener, until the function that it returns. It is set by server_test.go: package
// zktest, which imports this one, has the server.
var Serve func(net.Listener) (stop func())

// benchServers returns the connect string of the real ensemble that the
// environment names, or else of an in-process server on loopback.
func benchServers(b *testing.B) string {
	if s := os.Getenv("MENAGERIE_TEST_SERVERS"); s != "" {
		return s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(Serve(l))
	return l.Addr().String()
}

func benchSessions(b *testing.B, servers string, n int) []*Session {
	all := make([]*Session, n)
	var group errgroup.Group
	group.SetLimit(32)
	for i := range all {
		group.Go(func() (err error) {
			all[i], err = Connect(context.Background(), servers, WithTimeout(30*time.Second),
				WithLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))))
			return err
		})
	}
	b.Cleanup(func() {
		for _, s := range all {
			if s != nil {
				group.Go(s.Close)
			}
		}
		require.NoError(b, group.Wait())
	})
	require.NoError(b, group.Wait())
	return all
}

func benchPath() string { return fmt.Sprintf("/bench-%d", time.Now().UnixNano()) }

// BenchmarkHandover compares two ways of waiting where many wait: with the read of the last name,
// and with listings, as without a crowd. One operation is one hand-over.
func BenchmarkHandover(b *testing.B) {
	servers := benchServers(b)
	for _, n := range []int{2, 8, 32} {
		sessions := benchSessions(b, servers, n)
		for _, crowd := range []int32{3, math.MaxInt32} {
			b.Run(fmt.Sprintf("sessions=%d/crowd=%v", n, crowd == 3), func(b *testing.B) {
				queue.Crowd = crowd
				defer func() { queue.Crowd = 3 }()
				lockAndUnlock(b, sessions)
			})
		}
	}
}

// BenchmarkUncontended compares an Unlock that waits for the servers with one that does not.
// One operation is a Lock and an Unlock of a mutex that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	sessions := benchSessions(b, benchServers(b), 1)
	b.Run("async=false", func(b *testing.B) { lockAndUnlock(b, sessions) })
	b.Run("async=true", func(b *testing.B) { lockAndUnlock(b, sessions, WithAsyncUnlock()) })
}

func lockAndUnlock(b *testing.B, sessions []*Session, opts ...Option) {
	path := benchPath()
	var todo, wg = make(chan struct{}, b.N), sync.WaitGroup{}
	for range b.N {
		todo <- struct{}{}
	}
	close(todo)
	b.ResetTimer()
	for _, s := range sessions {
		m := NewMutex(s, path, opts...)
		wg.Go(func() {
			for range todo {
				m.Lock()
				m.Unlock()
			}
		})
	}
	wg.Wait()
}

// BenchmarkWaiters queues many waiters behind a holder and lets them drain. It
// reports memory and goroutines per waiter while they wait, and the time to drain.
func BenchmarkWaiters(b *testing.B) {
	servers := benchServers(b)
	b.Run("goroutines=10000", func(b *testing.B) {
		s := benchSessions(b, servers, 1)[0]
		for range b.N {
			m := NewMutex(s, benchPath())
			waiters(b, m, 10_000, func(int) *Mutex { return m })
		}
	})
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			servers := servers
			if os.Getenv("MENAGERIE_TEST_SERVERS") == "" {
				servers = serverProcess(b) // one process may open too few files for both ends of the connections
			}
			began := time.Now()
			sessions := benchSessions(b, servers, n+1)
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "connect-ms")
			for range b.N {
				path := benchPath()
				waiters(b, NewMutex(sessions[n], path), n, func(i int) *Mutex { return NewMutex(sessions[i], path) })
			}
		})
	}
	b.Run("depth=5000", func(b *testing.B) {
		s := benchSessions(b, servers, 1)[0]
		for range b.N {
			path := benchPath()
			waiters(b, NewMutex(s, path), 5000, func(int) *Mutex { return NewMutex(s, path) })
		}
	})
}

// atOnce is how many enter the queue at a time. The first object of a session lists all who are ahead of it. With ten
// thousand at a time the server has so much to answer that sessions expire.
const atOnce = 50

func waiters(b *testing.B, holder *Mutex, n int, of func(i int) *Mutex) {
	holder.Lock()
	goroutines, heap := runtime.NumGoroutine(), inUse()
	var wg sync.WaitGroup
	began := time.Now()
	places := map[*Mutex]bool{holder: true}
	for i := range n {
		m := of(i)
		places[m] = true
		wg.Go(func() {
			m.Lock()
			m.Unlock()
		})
		if m != holder && len(places)%atOnce == 0 {
			queued(b, holder, len(places), n)
		}
	}
	queued(b, holder, len(places), n)
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "queue-ms")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(n), "goroutines/waiter")
	b.ReportMetric(float64(inUse()-heap)/float64(n), "B/waiter")
	began = time.Now()
	holder.Unlock()
	wg.Wait()
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "drain-ms")
}

// queued waits until all waiters wait: in the queue, or locally behind the holder. Nobody is told of the last who queues,
// hence the looks, in real time.
func queued(b testing.TB, holder *Mutex, places, n int) {
	e, err := holder.at().Session.Client().Epoch(context.Background())
	require.NoError(b, err)
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		st, _, err := e.Exists(context.Background(), holder.key())
		require.NoError(b, err)
		local := holder.cohort().Waiting()
		if int(st.NumChildren) == places && (places > 1 || local == n) {
			return
		}
		require.True(b, time.Now().Before(deadline), "%d of %d places, %d local waiters", st.NumChildren, places, local)
	}
}
