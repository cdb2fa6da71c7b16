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

// first is when an entry lists for the first time that was the n-th child of its directory, if so many of its session wait to list.
func first(n, waiting int) time.Duration {
	return time.Duration(n)*250*time.Microsecond + time.Duration(n*n)*250*time.Nanosecond/time.Duration(waiting)
}

// It would be 500 listings of 500 names.
func TestTheWaitersOfASessionInADeepCrowdShareOneListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10)
		c.enter(t, 50)
		time.Sleep(first(1+deep+500, 1))
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

// A server must not get all their listings at once. The 66th child lists after first(66, 1), and so on.
func TestWaitersOfManySessionsListOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 150
		c := newCrowd(t, n)
		c.enter(t, 1)
		time.Sleep(first(1+deep+n, 1))
		at := map[time.Duration]bool{}
		for _, instants := range c.listings() {
			require.Len(t, instants, 1)
			at[instants[0]] = true
		}
		require.NotEmpty(t, at)
		require.Len(t, at, len(c.listings()), "no two at one instant")
		for i := range n {
			delete(at, first(1+deep+i+1, 1))
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
		time.Sleep(first(69, 2))
		require.Equal(t, map[int64][]time.Duration{c.sessions[0].ID(): {first(69, 2)}}, c.listings())
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
		c.enter(t, 200)
		id := c.sessions[0].ID()
		heal := c.srv.DropReplies(id)
		time.Sleep(time.Second)
		require.Len(t, c.listings()[id], 1)
		heal()
		c.srv.Disconnect(id)
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
func TestALockAboveManyLocksIsLateOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		below, s := srv.Session(t), srv.Session(t)
		for i := range 2 * deep {
			_, err := zksync.NewMutex(below, fmt.Sprint("/locks/", i)).LockContext(t.Context())
			require.NoError(t, err)
		}
		for _, late := range []time.Duration{first(2*deep+1, 1), 0, 0} {
			began := time.Now()
			l, err := zksync.NewMutex(s, "/locks").LockContext(t.Context())
			require.NoError(t, err)
			require.Equal(t, late, time.Since(began))
			require.NoError(t, l.Unlock())
		}
	})
}

// Those ahead may give up, or be no entries, as here.
func TestAWaiterListsWithinTheSessionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(4*time.Second))
		nodes := make(map[string]string)
		for i := range 4000 {
			nodes[fmt.Sprint("/locks/", i)] = ""
		}
		srv.Load(nodes)
		require.Greater(t, first(len(nodes)+1, 1), s.Timeout())
		began := time.Now()
		l, err := zksync.NewMutex(s, "/locks").LockContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, s.Timeout(), time.Since(began))
		require.NoError(t, l.Unlock())
		srv.DeleteAll("/locks")
	})
}
