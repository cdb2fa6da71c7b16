package zksync_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Pings keep an idle session; the entries of four locks are held up, and what overtakes them tells the clock more
// than they can when they come.
func TestEntriesThatAreOvertakenAreGrantedOnceAndForGood(t *testing.T) {
	for _, held := range []time.Duration{100 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		t.Run(held.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				s := srv.Session(t, zksync.WithTimeout(10*time.Second))
				id := s.ID()
				locks := make([]*zksync.Mutex, 4)
				for i := range locks {
					srv.Load(map[string]string{fmt.Sprintf("/locks/%d/x", i): ""}) // so the directory stays
					locks[i] = zksync.NewMutex(s, fmt.Sprintf("/locks/%d", i))
					locks[i].Lock()
					locks[i].Unlock()
				}
				for range 12 {
					time.Sleep(25300 * time.Millisecond)
					var entries atomic.Int32
					remove := srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
						if q.Op == zktest.Multi && q.Session == id {
							entries.Add(1)
							return zktest.Verdict{Delay: held}
						}
						return zktest.Verdict{}
					})
					var all sync.WaitGroup
					leases := make([]*zksync.Lease, len(locks))
					for i, m := range locks {
						all.Go(func() {
							time.Sleep(time.Duration(i) * 700 * time.Millisecond)
							l, err := m.LockContext(context.Background())
							assert.NoError(t, err)
							assert.True(t, l.Valid(), "granted without proof")
							leases[i] = l
						})
					}
					all.Wait()
					remove()
					require.EqualValues(t, 4, entries.Load(), "each enters once")
					time.Sleep(30 * time.Second)
					for _, l := range leases {
						require.True(t, l.Valid())
						require.NoError(t, l.Unlock())
					}
				}
				require.Equal(t, id, s.ID(), "a healthy session was given up")
			})
		})
	}
}

var slowWays = map[string]func(srv *zktest.Server, id int64, trip time.Duration){
	"requests late": func(srv *zktest.Server, id int64, trip time.Duration) { srv.Delay(id, trip, 0) },
	"replies late":  func(srv *zktest.Server, id int64, trip time.Duration) { srv.Delay(id, 0, trip) },
	"both late":     func(srv *zktest.Server, id int64, trip time.Duration) { srv.Delay(id, trip/2, trip/2) },
}

var timeouts = []time.Duration{time.Second, 4 * time.Second, 40 * time.Second}

// onALink runs f with a session whose timeout is T, for every T and way in which a link may be slow.
func onALink(t *testing.T, f func(t *testing.T, s *zksync.Session, T time.Duration, slow func(part float64))) {
	for _, T := range timeouts {
		for way, delay := range slowWays {
			t.Run(fmt.Sprintf("%v, %s", T, way), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Run(t, zktest.WithTimeoutLimits(time.Millisecond, time.Hour), zktest.WithLeftovers())
					s := srv.Session(t, zksync.WithTimeout(T))
					id := s.ID()
					f(t, s, T, func(part float64) { delay(srv, id, time.Duration(part*float64(T))) })
				})
			})
		}
	}
}

// longEnough is many heartbeats, which is as good as for ever: nothing is random.
const longEnough = 12

// bound is just below a third. At that the client library gives up an idle connection: it pings after a third
// of the timeout, and waits for two thirds.
const bound = 0.33

func TestALeaseIsGrantedAndKeptWithRoundTripsOfUpToAThirdOfTheTimeout(t *testing.T) {
	for _, part := range []float64{0.05, 0.094, 0.096, 0.125, 0.2, 0.25, 0.3, bound} {
		onALink(t, func(t *testing.T, s *zksync.Session, T time.Duration, slow func(float64)) {
			id := s.ID()
			slow(part)
			l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
			require.NoError(t, err)
			time.Sleep(longEnough * T)
			require.True(t, l.Valid(), "lost with a round trip of %.3f T", part)
			require.Equal(t, id, s.ID())
			slow(0)
		})
	}
}

// Beyond (0.95 - 0.25) / 2 no heartbeat can prove anything in time.
func TestNoLeaseIsGrantedWithRoundTripsOfMoreThanThat(t *testing.T) {
	onALink(t, func(t *testing.T, s *zksync.Session, T time.Duration, slow func(float64)) {
		m := zksync.NewMutex(s, "/locks/a")
		m.Lock()
		m.Unlock()
		id := s.ID()
		time.Sleep(2 * T)
		slow(0.351)
		start := time.Now()
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, id, s.ID(), "in the next session, on a better link")
		require.GreaterOrEqual(t, time.Since(start), T*9/10)
		require.True(t, l.Valid())
	})
}

func TestALeaseOutlivesALinkThatBecomesSlowAllAtOnceByAQuarterOfTheTimeout(t *testing.T) {
	for part, kept := range map[float64]bool{0.1: true, 0.2: true, 0.25: true, 0.28: true, 0.3: true, 0.351: false} {
		onALink(t, func(t *testing.T, s *zksync.Session, T time.Duration, slow func(float64)) {
			l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
			require.NoError(t, err)
			time.Sleep(3*T + T/7)
			slow(part)
			time.Sleep(longEnough * T)
			require.Equal(t, kept, l.Valid(), "a round trip of %.3f T", part)
			slow(0)
		})
	}
}
