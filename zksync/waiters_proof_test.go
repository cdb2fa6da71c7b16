package zksync_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// heartbeats counts the syncs with which sessions ask the leader for proof, by session.
type heartbeats struct {
	mu sync.Mutex
	n  map[int64]int
}

func countHeartbeats(srv *zktest.Server) *heartbeats {
	h := &heartbeats{n: map[int64]int{}}
	srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if q.Op == zktest.Sync && q.Path == "/" {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.n[q.Session]++
		}
		return zktest.Verdict{}
	})
	return h
}

// in returns how many came in that time.
func (h *heartbeats) in(d time.Duration) map[int64]int {
	take := func() map[int64]int {
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		n := h.n
		h.n = map[int64]int{}
		return n
	}
	take()
	time.Sleep(d)
	return take()
}

// queueUp has n sessions wait for a mutex one behind the other; the first holds it.
func queueUp(t *testing.T, srv *zktest.Server, n int) (ids []int64, leases []chan *zksync.Lease) {
	for i := range n {
		s := srv.Session(t, zksync.WithTimeout(10*time.Second))
		got := make(chan *zksync.Lease, 1)
		go func() {
			l, err := zksync.NewMutex(s, "/locks/a").LockContext(context.Background())
			assert.NoError(t, err)
			got <- l
		}()
		zktest.WaitChildren(t, srv, "/locks/a", i+1)
		synctest.Wait()
		ids, leases = append(ids, s.ID()), append(leases, got)
	}
	return ids, leases
}

func TestOnlyTheHolderAndTheNextAskTheLeaderForProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 10
		srv := zktest.Run(t)
		ids, leases := queueUp(t, srv, 1+waiters)
		h := countHeartbeats(srv)
		time.Sleep(time.Minute + time.Millisecond)
		// A sixteenth of ten seconds, twice, for ten minutes; however many wait.
		require.Equal(t, map[int64]int{ids[0]: 960, ids[1]: 960}, h.in(10*time.Minute))

		// Whoever becomes the next asks from then on.
		require.NoError(t, (<-leases[0]).Unlock())
		l := <-leases[1]
		require.True(t, l.Valid())
		time.Sleep(time.Minute)
		require.Equal(t, map[int64]int{ids[1]: 192, ids[2]: 192}, h.in(2*time.Minute))
		require.NoError(t, l.Unlock())
		for _, next := range leases[2:] {
			require.NoError(t, (<-next).Unlock())
		}
		time.Sleep(time.Minute)
		require.Empty(t, h.in(10*time.Minute), "nobody holds or waits")
	})
}

// Those who cannot be the next send the client library's pings, and look after every session timeout without an event
// whether the one ahead is still there. How many wait does not matter.
func TestAWaiterThatCannotBeTheNextSendsPingsAndOneReadInATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters, timeouts = 100, 6
		srv := zktest.Run(t)
		ids, leases := queueUp(t, srv, 1+waiters)
		time.Sleep(time.Minute + time.Millisecond) // not at an instant at which they send
		var mu sync.Mutex
		sent := map[int64]map[zktest.Op]int{}
		for _, id := range ids {
			sent[id] = map[zktest.Op]int{}
		}
		stop := srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			mu.Lock()
			defer mu.Unlock()
			sent[q.Session][q.Op]++
			return zktest.Verdict{}
		})
		time.Sleep(timeouts * 10 * time.Second)
		stop()
		for _, id := range ids[2:] {
			require.Equal(t, map[zktest.Op]int{zktest.Ping: 3 * timeouts, zktest.Exists: timeouts}, sent[id])
		}
		for _, next := range leases {
			require.NoError(t, (<-next).Unlock())
		}
	})
}

func TestOneProofServesAllThatASessionHoldsAndWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(10*time.Second))
		ctx, cancel := context.WithCancel(context.Background())
		var waiting sync.WaitGroup
		defer waiting.Wait()
		defer cancel()
		other := srv.Session(t, zksync.WithTimeout(10*time.Second))
		for i := range 20 {
			zksync.NewMutex(s, fmt.Sprintf("/held/%d", i)).Lock()
			path := fmt.Sprintf("/awaited/%d", i)
			l, err := zksync.NewMutex(other, path).LockContext(t.Context())
			require.NoError(t, err)
			defer l.Unlock()
			waiting.Go(func() { _, _ = zksync.NewMutex(s, path).LockContext(ctx) })
		}
		h := countHeartbeats(srv)
		time.Sleep(time.Minute + time.Millisecond)
		require.Equal(t, map[int64]int{s.ID(): 192, other.ID(): 192}, h.in(2*time.Minute))
	})
}

// No request stands between the release and the grant, however long both have waited: the next one's proof is
// kept fresh. Nor is anybody granted without proof.
func TestTheNextIsGrantedWithoutARequestHoweverLongItHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		ids, leases := queueUp(t, srv, 3)
		time.Sleep(10 * time.Minute)
		for _, id := range ids {
			srv.Delay(id, 0, 50*time.Millisecond) // every answer, and every event
		}
		time.Sleep(10 * time.Minute)
		l := <-leases[0]
		for _, next := range leases[1:] {
			released := time.Now()
			go l.Unlock()
			l = <-next
			require.Equal(t, 50*time.Millisecond, time.Since(released), "the event alone")
			require.True(t, l.Valid())
			time.Sleep(time.Minute)
			require.True(t, l.Valid())
		}
		require.NoError(t, l.Unlock())
	})
}

// The one between leaves at the very moment of the release: whoever is next by that has not asked for proof, and
// has none after an hour of pings. It gets it before it is granted: two round trips.
func TestWhoBecameTheNextAMomentAgoIsGrantedWhenItsProofIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		ids, leases := queueUp(t, srv, 3)
		time.Sleep(10 * time.Minute)
		last := ids[2]
		remove := srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session == last && q.Op == zktest.Sync {
				return zktest.Verdict{Delay: 200 * time.Millisecond}
			}
			return zktest.Verdict{}
		})
		defer remove()
		released := time.Now()
		for _, n := range srv.Children("/locks/a") { // as one who cleans up
			if !strings.HasSuffix(n, "2") {
				srv.Delete("/locks/a/" + n)
			}
		}
		l := <-leases[2]
		require.Equal(t, 400*time.Millisecond, time.Since(released))
		require.True(t, l.Valid())
		time.Sleep(time.Minute)
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		(<-leases[0]).Unlock()
		(<-leases[1]).Unlock()
	})
}

func TestTheFirstLockAfterAPauseCostsOneMoreRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 50 * time.Millisecond
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(10*time.Second))
		srv.Load(map[string]string{"/locks/a": ""}) // no container, which would not outlast the pause
		m := zksync.NewMutex(s, "/locks/a")
		m.Lock()
		m.Unlock()
		srv.Delay(s.ID(), 0, trip)
		var mu sync.Mutex
		var asked []zktest.Op
		srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			mu.Lock()
			defer mu.Unlock()
			if q.Op != zktest.Ping {
				asked = append(asked, q.Op)
			}
			return zktest.Verdict{}
		})
		sofar := func() (ops []zktest.Op) { // and begins again
			mu.Lock()
			defer mu.Unlock()
			ops, asked = asked, nil
			return ops
		}
		lock := func() (took time.Duration, ops []zktest.Op) {
			synctest.Wait()
			sofar()
			start := time.Now()
			l, err := m.LockContext(t.Context())
			require.NoError(t, err)
			took, ops = time.Since(start), sofar()
			require.NoError(t, l.Unlock())
			return took, ops
		}
		for range 3 {
			time.Sleep(time.Minute)
			took, ops := lock()
			require.Equal(t, 2*trip, took)
			require.Equal(t, []zktest.Op{zktest.Multi, zktest.Sync}, ops)
			for range 5 {
				took, ops = lock()
				require.Equal(t, trip, took)
				require.Equal(t, []zktest.Op{zktest.Multi}, ops)
				time.Sleep(2400 * time.Millisecond) // less than a quarter of the timeout
			}
		}
		srv.Delay(s.ID(), 0, 0)
	})
}
