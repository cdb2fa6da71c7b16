package zksync_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/bench"
	"github.com/go-menagerie/menagerie/internal/zkserver"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	tenThousand = 10_000
	group       = 50               // so many enter at once
	still       = 20 * time.Second // so long all wait, and requests are counted
)

// BenchmarkTenThousandSessions queues ten thousand sessions of this process for one lock and lets them drain. It takes
// minutes, and its name is such that `-bench Waiters` leaves it out. Heap and stacks are those of whole sessions.
// If the server is in this process, they and RSS include the server's.
func BenchmarkTenThousandSessions(b *testing.B) {
	servers := os.Getenv("MENAGERIE_TEST_SERVERS")
	if servers == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		srv := zkserver.New(zkserver.Config{})
		go srv.Serve(l)
		b.Cleanup(srv.Close)
		servers = l.Addr().String()
	}
	for range b.N {
		heap, rss := memory(b)
		var m bench.Meter
		began := time.Now()
		sessions := connectMany(b, servers, &m, tenThousand+1)
		b.ReportMetric(time.Since(began).Seconds(), "connect-s")
		drain := queueMany(b, &m, sessions)
		nowHeap, nowRSS := memory(b)
		b.ReportMetric(float64(nowHeap-heap)/tenThousand, "B/session")
		b.ReportMetric(float64(nowRSS-rss)/tenThousand, "RSS-B/session")
		drain()
		closeMany(sessions)
	}
}

func connectMany(b *testing.B, servers string, m *bench.Meter, n int) []*zksync.Session {
	all := make([]*zksync.Session, n)
	var connecting errgroup.Group
	connecting.SetLimit(32)
	for i := range all {
		connecting.Go(func() (err error) {
			all[i], err = zksync.Connect(context.Background(), servers, zksync.WithTimeout(40*time.Second),
				zksync.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))),
				zksync.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := new(net.Dialer).DialContext(ctx, network, addr)
					if err != nil {
						return nil, err
					}
					return m.Wrap(c), nil
				}))
			return err
		})
	}
	require.NoError(b, connecting.Wait())
	return all
}

func closeMany(sessions []*zksync.Session) {
	var closing errgroup.Group
	closing.SetLimit(32)
	for _, s := range sessions {
		closing.Go(s.Close)
	}
	_ = closing.Wait()
}

// queueMany has the last session hold a lock, and the others wait for it. The function that it returns lets them have it.
func queueMany(b *testing.B, m *bench.Meter, sessions []*zksync.Session) (drain func()) {
	path := fmt.Sprintf("/bench-%d", time.Now().UnixNano())
	n := len(sessions) - 1
	held, err := zksync.NewMutex(sessions[n], path).LockContext(context.Background())
	require.NoError(b, err)
	var waiting sync.WaitGroup
	report := reporter(b, m, n)
	for from := 0; from < n; from += group {
		before := m.Traffic().Requests
		now := sessions[from:min(from+group, n)]
		for _, s := range now {
			waiting.Go(func() {
				l, err := zksync.NewMutex(s, path).LockContext(context.Background())
				if err != nil {
					b.Errorf("not locked: %v", err)
					return
				}
				if err := l.Unlock(); err != nil {
					b.Errorf("not unlocked: %v", err)
				}
			})
		}
		settle(m, before+2*int64(len(now))) // each enters, and learns who is ahead
	}
	settle(m, 0)
	report("queue")
	before := m.Traffic()
	time.Sleep(still)
	b.ReportMetric(float64(m.Traffic().Requests-before.Requests), "requests-in-20s")
	return func() {
		report := reporter(b, m, n)
		require.NoError(b, held.Unlock())
		waiting.Wait()
		report("drain")
	}
}

// settle waits until so many requests were sent, and then until nothing was
// received for some time. Listings that are still on their way would be counted in with what follows.
func settle(m *bench.Meter, requests int64) {
	for in := int64(-1); ; time.Sleep(5 * time.Millisecond) {
		now := m.Traffic()
		if now.Requests >= requests && now.BytesIn-in < 1000 { // pings are answered all the time
			return
		}
		in = now.BytesIn
	}
}

// reporter begins to count. What it returns reports what was needed since, for each of n waiters.
func reporter(b *testing.B, m *bench.Meter, n int) func(phase string) {
	began, before := time.Now(), m.Traffic()
	return func(phase string) {
		now := m.Traffic()
		b.ReportMetric(time.Since(began).Seconds(), phase+"-s")
		b.ReportMetric(float64(now.Requests-before.Requests)/float64(n), phase+"-requests/waiter")
		b.ReportMetric(float64(now.BytesIn+now.BytesOut-before.BytesIn-before.BytesOut)/float64(n), phase+"-B/waiter")
	}
}

// memory returns the live heap with the stacks, and the resident set, which is 0 where there is no /proc.
func memory(b *testing.B) (live, resident int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS:") {
			_, err := fmt.Sscanf(line, "VmRSS: %d kB", &resident)
			require.NoError(b, err)
		}
	}
	return int64(m.HeapAlloc + m.StackInuse), resident << 10
}
