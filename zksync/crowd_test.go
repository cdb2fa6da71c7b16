package zksync_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// crowd is many who lock one path at the same instant, behind a holder and 64 waiters of another session. So whoever
// reads the last name in time does not list at all; all others list late.
type crowd struct {
	srv      *zktest.Server
	sessions []*zksync.Session
	first    *zksync.Session // of those ahead
	holder   *zksync.Lease
	began    time.Time
	waiters  sync.WaitGroup
	held     sync.Mutex

	mu     sync.Mutex
	listed map[int64][]time.Duration // when a session of the crowd has listed the path; not counted are those of the first instant
}

// deep is behind how many an entry lists late.
const deep = 64

func newCrowd(t *testing.T, sessions int) *crowd {
	c := &crowd{srv: zktest.Run(t), listed: map[int64][]time.Duration{}}
	c.first = c.srv.Session(t, zksync.WithTimeout(30*time.Second))
	var err error
	c.holder, err = zksync.NewMutex(c.first, "/locks/a").LockContext(t.Context())
	require.NoError(t, err)
	for range deep {
		c.waiters.Go(func() { c.lock(t, context.Background(), c.first) })
		synctest.Wait()
	}
	for range sessions {
		c.sessions = append(c.sessions, c.srv.Session(t, zksync.WithTimeout(30*time.Second)))
	}
	synctest.Wait()
	c.srv.SetVersion("/locks/a", 10_000) // as if many had locked: an entry counts only those that write to the directory as ours do
	c.began = time.Now()
	c.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		c.mu.Lock()
		defer c.mu.Unlock()
		if at := time.Since(c.began); q.Session != c.first.ID() && q.Op == zktest.GetChildren && q.Path == "/locks/a" && at > 0 {
			c.listed[q.Session] = append(c.listed[q.Session], at)
		}
		return zktest.Verdict{}
	})
	return c
}

// enter has n objects of each session lock and unlock.
func (c *crowd) enter(t *testing.T, n int) {
	for _, s := range c.sessions {
		for range n {
			c.waiters.Go(func() { c.lock(t, context.Background(), s) })
		}
	}
	synctest.Wait()
}

func (c *crowd) lock(t *testing.T, ctx context.Context, s *zksync.Session) {
	l, err := zksync.NewMutex(s, "/locks/a").LockContext(ctx)
	if ctx.Err() != nil {
		return
	}
	if assert.NoError(t, err) {
		assert.True(t, c.held.TryLock(), "two hold")
		c.held.Unlock()
		assert.NoError(t, l.Unlock())
	}
}

// drain lets all have the lock.
func (c *crowd) drain(t *testing.T) {
	require.NoError(t, c.holder.Unlock())
	c.waiters.Wait()
	synctest.Wait()
	require.Empty(t, c.srv.Children("/locks/a"))
}

// listings is when the sessions have listed so far.
func (c *crowd) listings() map[int64][]time.Duration {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listed
}

// first is when an entry lists for the first time that was the n-th child of its directory.
func first(n int) time.Duration { return time.Duration(n) * 30 * time.Microsecond }

// It would be 500 listings of 500 names.
func TestTheWaitersOfASessionInADeepCrowdShareOneListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10)
		c.enter(t, 50)
		time.Sleep(first(1 + deep + 500))
		require.NotEmpty(t, c.listings())
		for _, at := range c.listings() {
			require.Len(t, at, 1)
		}
		c.drain(t)
		for _, at := range c.listings() {
			require.Len(t, at, 1, "nothing is asked while the queue drains")
		}
	})
}

// Whether to list later costs a request, too.
func TestTheWaitersOfASessionAskOnceWhetherToListLater(t *testing.T) {
	for _, slow := range []zktest.Op{zktest.Exists, zktest.GetChildren} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, 1)
			asked := 0
			c.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if q.Session != c.first.ID() && q.Op == zktest.Exists && q.Path == "/locks/a" {
					asked++
				}
				return zktest.Verdict{}
			})
			in := c.srv.Intercept(zktest.On(slow, "/locks/a").DelayReply(time.Second))
			c.enter(t, 50)
			time.Sleep(1500 * time.Millisecond)
			in.Remove()
			require.Equal(t, 1, asked, "%v is slow", slow)
			require.Len(t, c.listings()[c.sessions[0].ID()], 1)
			c.drain(t)
		})
	}
}

// A server must not get all their listings at once. The 66th child lists after first(66), and so on.
func TestWaitersOfManySessionsListOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 150
		c := newCrowd(t, n)
		c.enter(t, 1)
		time.Sleep(first(1 + deep + n))
		at := map[time.Duration]bool{}
		for _, instants := range c.listings() {
			require.Len(t, instants, 1)
			at[instants[0]] = true
		}
		require.NotEmpty(t, at)
		require.Len(t, at, len(c.listings()), "no two at one instant")
		for i := range n {
			delete(at, first(1+deep+i+1))
		}
		require.Empty(t, at)
		c.drain(t)
	})
}

// foreign queues n entries that are not sealed: behind them nothing can be guessed.
func (c *crowd) foreign(t *testing.T, conn *zk.Conn, n int) (nodes []string) {
	for range n {
		p, err := conn.CreateProtectedEphemeralSequential("/locks/a/lock-", nil, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		nodes = append(nodes, p)
	}
	return nodes
}

func TestAWaiterThatGivesUpDoesNotListForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		conn := c.srv.Connect(t, 30*time.Second)
		nodes := c.foreign(t, conn, 1)
		ctx, cancel := context.WithCancel(context.Background())
		c.waiters.Go(func() { c.lock(t, ctx, c.sessions[0]) }) // the 67th child
		synctest.Wait()
		nodes = append(nodes, c.foreign(t, conn, 1)...)
		c.enter(t, 1) // the 69th
		cancel()
		time.Sleep(first(69))
		require.Equal(t, map[int64][]time.Duration{c.sessions[0].ID(): {first(69)}}, c.listings())
		for _, p := range nodes {
			require.NoError(t, conn.Delete(p, -1))
		}
		c.drain(t)
	})
}

// Each waiter would list when the connection is back.
func TestAListingThatManyAwaitIsRepeatedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		id := c.sessions[0].ID()
		c.srv.Intercept(zktest.On(zktest.GetChildren, "/locks/a").Of(id).Nth(1).LoseReply())
		c.enter(t, 200)
		time.Sleep(time.Minute)
		require.Len(t, c.listings()[id], 2)
		c.drain(t)
	})
}

func TestAWaiterLearnsWhyItsSharedListingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.foreign(t, c.srv.Connect(t, 30*time.Second), 1)
		refuse := c.srv.Intercept(zktest.On(zktest.GetChildren, "/locks/a").Of(c.sessions[0].ID()).Error(zktest.CodeThrottled).Times(1000).Maybe())
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := zksync.NewMutex(c.sessions[0], "/locks/a").LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "throttled at /locks/a")
		refuse.Remove()
		c.srv.DeleteAll("/locks/a")
		c.drain(t)
	})
}

// Its children that are no entries are no crowd.
func TestALockAboveManyLocksIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		nodes := make(map[string]string)
		for i := range 10 * deep {
			nodes[fmt.Sprint("/locks/", i)] = ""
		}
		srv.Load(nodes)
		s := srv.Session(t)
		for _, late := range []time.Duration{0, 0, first(10*deep + 1), 0} {
			if late > 0 {
				srv.SetVersion("/locks", 10_000) // many have locked: a session must list once to know
				s = srv.Session(t)
			}
			began := time.Now()
			l, err := zksync.NewMutex(s, "/locks").LockContext(t.Context())
			require.NoError(t, err)
			require.Equal(t, late, time.Since(began))
			require.NoError(t, l.Unlock())
		}
		srv.DeleteAll("/locks")
	})
}

// A session that knows nothing of them must not wait as behind thousands of entries: nobody may be ahead.
func TestALockAboveThousandsOfLocksIsNotLateBySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		nodes := make(map[string]string)
		for i := range 3000 {
			nodes[fmt.Sprint("/locks/", i)] = ""
		}
		srv.Load(nodes)
		srv.SetSequence("/locks", 3000+10_000) // many have locked and released
		srv.SetVersion("/locks", 10_000)
		began := time.Now()
		l, err := zksync.NewMutex(srv.Session(t), "/locks").LockContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, first(3001), time.Since(began))
		require.NoError(t, l.Unlock())
		srv.DeleteAll("/locks")
	})
}

// behind makes n entries that are not sealed, and a session with this timeout. enter has so many of its goroutines lock. listed is when it has listed.
func behind(t *testing.T, timeout time.Duration, n int) (nodes []string, conn *zk.Conn, enter func(int), listed func() []time.Duration) {
	c := newCrowd(t, 0)
	conn = c.srv.Connect(t, time.Minute)
	nodes = c.foreign(t, conn, n-1-deep)
	require.NoError(t, c.holder.Unlock()) // and all others of ours
	c.waiters.Wait()
	synctest.Wait()
	nodes = append(nodes, c.foreign(t, conn, 1+deep)...)
	s := c.srv.Session(t, zksync.WithTimeout(timeout))
	c.began = time.Now()
	t.Cleanup(c.waiters.Wait)
	enter = func(goroutines int) {
		for range goroutines {
			c.waiters.Go(func() { c.lock(t, context.Background(), s) })
		}
		synctest.Wait()
	}
	return nodes, conn, enter, func() []time.Duration { return c.listings()[s.ID()] }
}

// Servers that must list for all at once would let sessions end.
func TestBehindThousandsAWaiterListsWhenTheServersCanHaveListedForThoseAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2600
		nodes, conn, enter, listed := behind(t, 30*time.Second, n)
		enter(1)
		time.Sleep(time.Minute)
		require.Equal(t, []time.Duration{(n+1)*(n+1)*time.Microsecond - 5*time.Second}, listed())
		for _, p := range nodes {
			require.NoError(t, conn.Delete(p, -1))
		}
	})
}

// Its session has shared the listings, as all of such a crowd have: they are few. After a session timeout that is not known any more.
func TestTheLastWaiterOfASessionListsAsSoonAsTheOthersBehindThousands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2600
		nodes, conn, enter, listed := behind(t, 30*time.Second, n)
		enter(50)
		time.Sleep(time.Second)
		want := []time.Duration{first(n + 1)}
		require.Equal(t, want, listed())
		alone := func(after time.Duration) {
			// Behind it nothing can be guessed.
			last, err := conn.CreateProtectedEphemeralSequential("/locks/a/lock-", nil, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			nodes = append(nodes, last)
			enter(1)
			time.Sleep(time.Minute)
			want = append(want, after)
			require.Equal(t, want, listed())
		}
		alone(time.Second + first(n+52))
		alone(61*time.Second + (n+54)*(n+54)*time.Microsecond - 5*time.Second)
		for _, p := range nodes {
			require.NoError(t, conn.Delete(p, -1))
		}
	})
}

func TestAWaiterLearnsWithinATimeoutThatThoseAheadHaveGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3000
		nodes, conn, enter, listed := behind(t, 4*time.Second, n)
		enter(1)
		time.Sleep(time.Second)
		for _, p := range nodes[deep-1:] {
			require.NoError(t, conn.Delete(p, -1))
		}
		time.Sleep(time.Minute)
		require.Equal(t, []time.Duration{first(n+1) + 4*time.Second}, listed(), "it has asked at its first instant, and then after a timeout")
		for _, p := range nodes[:deep-1] {
			require.NoError(t, conn.Delete(p, -1))
		}
	})
}

func TestAWaiterListsAfterThreeTimeoutsInAnyCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4000
		nodes, conn, enter, listed := behind(t, 4*time.Second, n)
		enter(1)
		time.Sleep(time.Minute)
		require.Equal(t, []time.Duration{12 * time.Second}, listed())
		for _, p := range nodes {
			require.NoError(t, conn.Delete(p, -1))
		}
	})
}
