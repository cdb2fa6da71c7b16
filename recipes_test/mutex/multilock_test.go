package mutex_test

import (
	"context"
	"net"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// forks names the same n locks through a session of each of n philosophers.
func forks(v *proving.Env, n int) [][]*zksync.Mutex {
	v.T.Helper()
	all := make([][]*zksync.Mutex, n)
	for i := range all {
		s := v.Session()
		for j := range n {
			all[i] = append(all[i], zksync.NewMutex(s, "/forks/"+string(rune('a'+j))))
		}
	}
	return all
}

func TestPhilosophersWithMultiLocksNeverDeadlock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		const n = 4
		forks := forks(v, n)
		var meals [n]int // guarded by the fork of the same number
		var all sync.WaitGroup
		for i := range n {
			both := zksync.MultiLock(forks[i][i], forks[i][(i+1)%n])
			all.Go(func() {
				for range 10 {
					require.NoError(t, both.Do(context.Background(), func(_ context.Context, ls zksync.Leases) error {
						require.Len(t, ls, 2)
						meals[i]++
						meals[(i+1)%n]++
						return nil
					}))
				}
			})
		}
		all.Wait()
		require.Equal(t, [n]int{20, 20, 20, 20}, meals)
	})
}

// Another program locks b before a, as Curator's InterProcessMultiLock does with such a list.
func TestAMultiLockInOrderLocksInTheOrderThatItIsGiven(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		forks := forks(v, 2)
		b := v.Lock(forks[1][1])
		both := zksync.MultiLockInOrder(forks[0][1], forks[0][0])
		got := make(chan zksync.Leases, 1)
		go func() {
			ls, err := both.LockContext(context.Background())
			require.NoError(t, err)
			got <- ls
		}()
		v.Settled("/forks/b", 2)
		a := v.Lock(forks[1][0]) // it waits at b, and holds nothing
		require.NoError(t, a.Unlock())
		require.NoError(t, b.Unlock())
		ls := <-got
		require.Equal(t, "/forks/b", path.Dir(ls[0].Node()))
		require.Equal(t, "/forks/a", path.Dir(ls[1].Node()))
		require.NoError(t, ls.Unlock())
		_, err := zksync.MultiLockInOrder(forks[0][1], forks[0][0], forks[0][1]).LockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestAMultiLockIsAllOrNothingWithinOneDeadline(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		forks := forks(v, 2)
		held := v.Lock(forks[1][1])
		both := zksync.MultiLock(forks[0][1], forks[0][0])
		_, err := both.TryLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		v.Queued("/forks/a", 0)
		patience := v.Ample(300 * time.Millisecond) // to take the first one in, too
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		start := time.Now()
		_, err = both.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "/forks/b")
		v.Took(start, patience, "LockContext")
		v.Queued("/forks/a", 0)
		require.NoError(t, held.Unlock())
		both.Lock()
		require.False(t, forks[1][0].TryLock())
		both.Unlock()
		require.PanicsWithValue(t, "zksync: unlock of unlocked multi-lock", both.Unlock)
		v.Queued("/forks/a", 0)
		v.Queued("/forks/b", 0)
	})
}

func TestALossWhileAnotherLockIsWaitedForGivesAllUp(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		forks := forks(v, 2)
		s := v.Session()
		a, b := zksync.NewMutex(s, "/forks/a"), forks[1][1]
		held := v.Lock(forks[0][1])
		got := make(chan error, 1)
		go func() {
			ls, err := zksync.MultiLock(a, b).LockContext(context.Background())
			if err == nil {
				err = ls.Err()
			}
			got <- err
		}()
		v.Queued("/forks/b", 2)
		v.Server.Expire(s.ID())
		v.Quiet()
		require.NoError(t, held.Unlock())
		require.ErrorIs(t, <-got, zksync.ErrLost)
		v.Queued("/forks/b", 0)
	})
}

func TestAMultiLockOfOnePathTwiceIsMisuse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		forks := forks(v, 2)
		for _, m := range []*zksync.Multi{zksync.MultiLock(), zksync.MultiLock(nil), zksync.MultiLock(forks[0][0], forks[1][0])} {
			_, err := m.LockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
	})
}

func TestATryAtAMultiLockTakesAllOrNothing(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Session()
		both := zksync.MultiLock(zksync.NewMutex(s, "/multi/b"), zksync.NewMutex(s, "/multi/a"))
		a, b := zksync.NewMutex(other, "/multi/a"), zksync.NewMutex(other, "/multi/b")
		b.Lock()
		start := time.Now()
		require.False(t, both.TryLock())
		require.Less(t, time.Since(start), s.Timeout()/4, "it does not wait")
		v.Left("/multi/a", 0, "the first one was given back")
		require.True(t, a.TryLock(), "the first one was given back")
		a.Unlock()
		b.Unlock()
		v.Left("/multi/a", 0, "unlocked")
		v.Left("/multi/b", 0, "unlocked")
		require.True(t, both.TryLock())
		require.False(t, a.TryLock())
		require.False(t, b.TryLock())
		both.Unlock()
		v.Left("/multi/a", 0, "unlocked")
		require.True(t, a.TryLock())
		a.Unlock()
		require.Panics(t, func() { zksync.MultiLock().TryLock() })
		require.NoError(t, s.Close())
		require.Panics(t, func() { both.TryLock() })
	})
}

// Paths are the same on different clusters, and are different locks.
func TestAMultiLockTakesOnePathOnTwoClusters(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for _, servers := range []string{"elsewhere", "zk1"} { // the names of the servers do not matter
			elsewhere := zktest.Run(t)
			other, err := zksync.Connect(t.Context(), servers, zksync.WithDialer(func(_ context.Context, network, addr string) (net.Conn, error) {
				return elsewhere.Dial(network, addr, 0)
			}))
			require.NoError(t, err)
			here := zksync.NewMutex(v.Session(), proving.LockPath)
			there := zksync.NewMutex(other, proving.LockPath)
			for _, both := range []*zksync.Multi{zksync.MultiLock(here, there), zksync.MultiLock(there, here)} {
				held, err := both.LockContext(t.Context())
				require.NoError(t, err)
				require.Len(t, held, 2)
				require.Len(t, v.Children(proving.LockPath), 1)
				require.Len(t, elsewhere.Children(proving.LockPath), 1)
				require.NoError(t, held.Unlock())
				require.True(t, both.TryLock())
				both.Unlock()
			}
			require.NoError(t, other.Close())
		}
	})
}

func TestAMultiLockOfOneLockThroughTwoSessionsIsRefused(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		both := zksync.MultiLock(v.Mutexes(2)...)
		_, err := both.LockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "named twice")
		require.Panics(t, both.Lock)
		require.Panics(t, func() { both.TryLock() })
		v.Left(proving.LockPath, 0, "given back")
	})
}
