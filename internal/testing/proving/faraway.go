package proving

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// dialer is what a session opens its connections with.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// BenchFarAway runs a benchmark with one process near the servers, which never pauses, and one whose round trip is 20
// or 40 ms longer. Each call of the far one has a deadline of ten seconds. use prepares the calls of a session; calls of the near
// one come from so many goroutines.
func BenchFarAway(b *testing.B, goroutines int, use func(b *testing.B, s *zksync.Session) func(ctx context.Context) error) {
	for _, trip := range []time.Duration{20, 40} {
		b.Run(fmt.Sprintf("%dms", trip), func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			servers, dial := os.Getenv(ensemble.ServersEnv), dialer(new(net.Dialer).DialContext)
			if servers == "" {
				servers, dial = "127.0.0.1:2181", zktest.Run(b).DialContext
			}
			servers = fmt.Sprintf("%s/far-%d", servers, time.Now().UnixNano())
			connect := func(dial dialer) func(context.Context) error {
				s, err := zksync.Connect(b.Context(), servers, zksync.WithDialer(dial))
				require.NoError(b, err)
				b.Cleanup(func() { s.Close() })
				return use(b, s)
			}
			near, far := connect(dial), connect(away(b, dial, trip*time.Millisecond))
			require.NoError(b, near(b.Context()))
			farAway(b, goroutines, near, far)
		})
	}
}

func farAway(b *testing.B, goroutines int, near, far func(ctx context.Context) error) {
	const during, deadline = 5 * time.Second, 10 * time.Second
	var stop atomic.Bool
	var calls atomic.Int64
	done := make(chan error, goroutines)
	for range goroutines {
		go func() {
			var err error
			for ; err == nil && !stop.Load(); calls.Add(1) {
				err = near(context.Background())
			}
			done <- err
		}()
	}
	n, most, start := 0, time.Duration(0), time.Now()
	for ; time.Since(start) < during; n++ {
		began := time.Now()
		ctx, cancel := context.WithTimeout(b.Context(), deadline)
		require.NoError(b, far(ctx))
		cancel()
		most = max(most, time.Since(began))
	}
	took := time.Since(start).Seconds()
	stop.Store(true)
	for range goroutines {
		require.NoError(b, <-done)
	}
	b.ReportMetric(float64(calls.Load())/took, "near/s")
	b.ReportMetric(float64(n)/took, "far/s")
	b.ReportMetric(float64(most.Milliseconds()), "longest-ms")
}

// away is a network that ends behind a proxy on this machine, which keeps everything back for half of the round trip.
func away(b *testing.B, dial dialer, roundTrip time.Duration) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		up, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		defer l.Close()
		near, err := net.Dial("tcp", l.Addr().String())
		require.NoError(b, err)
		far, err := l.Accept()
		require.NoError(b, err)
		go forward(up, far, roundTrip/2)
		go forward(far, up, roundTrip/2)
		return near, nil
	}
}

// forward writes to dst what it reads from src, some time later.
func forward(dst, src net.Conn, later time.Duration) {
	type piece struct {
		due  time.Time
		data []byte
	}
	pieces := make(chan piece, 1<<16)
	go func() {
		defer dst.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := dst.Write(p.data); err != nil {
				src.Close()
			}
		}
	}()
	defer close(pieces)
	for {
		data := make([]byte, 64<<10)
		n, err := src.Read(data)
		if n > 0 {
			pieces <- piece{time.Now().Add(later), data[:n]}
		}
		if err != nil {
			return
		}
	}
}
