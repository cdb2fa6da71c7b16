package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// TestCosts measures what an operation costs when nothing is left to chance: in a bubble, where each client begins when
// nothing is under way. So it is a test, but it prints the costs as a benchmark does: make bench-compare accepts no growth.
// Allocations are those of the clients and of the in-process server together.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		name    string
		clients int
		maker   func(i int) maker // of each client
	}{
		{"uncontended", 1, every(mutex())},
		{"contended", 8, every(mutex())},
		{"readers", 9, func(i int) maker { return []maker{reader, writer}[i/8] }},
		{"semaphore", 8, every(func(s *zksync.Session, path string) acquirer {
			w := zksemaphore.NewWeighted(s, path, Permits)
			return func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, 1) }
		})},
		{"election", 8, every(func(s *zksync.Session, path string) acquirer {
			return zkelection.New(s, path, zkelection.Candidate{ID: "bench"}).Campaign
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			once, again := ring(t, c.clients, c.maker), ring(t, c.clients, c.maker)
			require.Positive(t, once.Requests)
			require.Equal(t, once.Traffic, again.Traffic)
			fmt.Printf("BenchmarkCosts/%s/clients=%d %d %s\n", c.name, c.clients, ringOps, once)
		})
	}
}

func every(m maker) func(int) maker { return func(int) maker { return m } }

// spending is the cost of ringOps operations.
type spending struct {
	Traffic
	allocs, allocated uint64
}

const ringOps = 72 // a multiple of the clients of each case

// String has the units by which tools/benchcompare judges. The runtime allocates now and then too, much less than once in an
// operation. An entry holds the process id, whose length does not count.
func (s spending) String() string {
	sent := float64(s.BytesOut)/ringOps - float64(len(strconv.Itoa(os.Getpid())))
	return fmt.Sprintf("%.3f exact-requests/op %.3f exact-received-bytes/op %.3f exact-sent-bytes/op %d allocs/op %d allocated-bytes/op",
		float64(s.Requests)/ringOps, float64(s.BytesIn)/ringOps, sent, s.allocs/ringOps, s.allocated/ringOps)
}

// ring has all clients enter, one after the other. Then the one that has held longest releases and enters again, and so
// on: an operation is a release and the next entry.
func ring(t *testing.T, clients int, of func(i int) maker) (spent spending) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // on one processor the number of allocations differs least
	synctest.Test(t, func(t *testing.T) {
		srv, meter := zktest.Start(), &Meter{}
		defer srv.Close()
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := srv.DialContext(ctx, network, address)
			return meter.Wrap(c), err
		}
		lockers, granted := make([]leaseLocker, clients), make([]chan error, clients)
		enter := func(i int) {
			go func() { granted[i] <- lockers[i].Acquire(t.Context()) }()
			synctest.Wait()
		}
		leave := func(i int) {
			require.NoError(t, <-granted[i])
			require.NoError(t, lockers[i].Release())
			synctest.Wait()
		}
		for i := range clients {
			s, err := zksync.Connect(t.Context(), "127.0.0.1:2181", zksync.WithDialer(dial))
			require.NoError(t, err)
			defer s.Close()
			lockers[i].acquire, granted[i] = of(i)(s, "/ring"), make(chan error, 1)
			enter(i)
		}
		turn := func(n int) {
			for i := range n {
				leave(i % clients)
				enter(i % clients)
			}
		}
		turn(2 * clients) // what is done once for an object, or for a path, does not count
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		from := meter.traffic()
		turn(ringOps)
		spent.Traffic = meter.traffic().minus(from)
		runtime.ReadMemStats(&after)
		spent.allocs, spent.allocated = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
		for i := range clients {
			leave(i)
		}
	})
	return spent
}
