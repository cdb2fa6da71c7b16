package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// forks names the same n locks through a session of each of n philosophers.
func (v *env) forks(n int) [][]*zksync.Mutex {
	v.t.Helper()
	all := make([][]*zksync.Mutex, n)
	for i := range all {
		s := v.session()
		for j := range n {
			all[i] = append(all[i], zksync.NewMutex(s, "/forks/"+string(rune('a'+j))))
		}
	}
	return all
}

func TestPhilosophersWithMultiLocksNeverDeadlock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		const n = 4
		forks := v.forks(n)
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

func TestAMultiLockIsAllOrNothingWithinOneDeadline(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		forks := v.forks(2)
		held := v.lock(forks[1][1])
		both := zksync.MultiLock(forks[0][1], forks[0][0])
		_, err := both.TryLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		v.queued("/forks/a", 0)
		patience := v.ample(300 * time.Millisecond) // to take the first one in, too
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		start := time.Now()
		_, err = both.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "/forks/b")
		v.took(start, patience, "LockContext")
		v.queued("/forks/a", 0)
		require.NoError(t, held.Unlock())
		both.Lock()
		require.False(t, forks[1][0].TryLock())
		both.Unlock()
		require.PanicsWithValue(t, "zksync: unlock of unlocked multi-lock", both.Unlock)
		v.queued("/forks/a", 0)
		v.queued("/forks/b", 0)
	})
}

func TestALossWhileAnotherLockIsWaitedForGivesAllUp(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		forks := v.forks(2)
		s := v.session()
		a, b := zksync.NewMutex(s, "/forks/a"), forks[1][1]
		held := v.lock(forks[0][1])
		got := make(chan error, 1)
		go func() {
			ls, err := zksync.MultiLock(a, b).LockContext(context.Background())
			if err == nil {
				err = ls.Err()
			}
			got <- err
		}()
		v.queued("/forks/b", 2)
		v.srv.Expire(s.ID())
		v.quiet()
		require.NoError(t, held.Unlock())
		require.ErrorIs(t, <-got, zksync.ErrLost)
		v.queued("/forks/b", 0)
	})
}

func TestAMultiLockOfOnePathTwiceIsMisuse(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		forks := v.forks(2)
		for _, m := range []*zksync.Multi{zksync.MultiLock(), zksync.MultiLock(nil), zksync.MultiLock(forks[0][0], forks[1][0])} {
			_, err := m.LockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
	})
}

func TestATryAtAMultiLockTakesAllOrNothing(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s, other := v.session(), v.session()
		both := zksync.MultiLock(zksync.NewMutex(s, "/multi/b"), zksync.NewMutex(s, "/multi/a"))
		a, b := zksync.NewMutex(other, "/multi/a"), zksync.NewMutex(other, "/multi/b")
		b.Lock()
		start := time.Now()
		require.False(t, both.TryLock())
		require.Less(t, time.Since(start), s.Timeout()/4, "it does not wait")
		v.left("/multi/a", 0, "the first one was given back")
		require.True(t, a.TryLock(), "the first one was given back")
		a.Unlock()
		b.Unlock()
		v.left("/multi/a", 0, "unlocked")
		v.left("/multi/b", 0, "unlocked")
		require.True(t, both.TryLock())
		require.False(t, a.TryLock())
		require.False(t, b.TryLock())
		both.Unlock()
		v.left("/multi/a", 0, "unlocked")
		require.True(t, a.TryLock())
		a.Unlock()
		require.Panics(t, func() { zksync.MultiLock().TryLock() })
		require.NoError(t, s.Close())
		require.Panics(t, func() { both.TryLock() })
	})
}
