package mutex_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance013WaitersAreGrantedInTheOrderInWhichTheServersQueuedThem(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(7)
		holder := v.Lock(ms[0])
		waiters := v.Line(ms[1:]...)
		for i, a := range waiters {
			require.NoError(t, holder.Unlock())
			holder = v.Granted(a)
			v.Quiet()
			for j, later := range waiters[i+1:] {
				require.True(t, later.Pending(), "%d was granted with %d", i+1+j, i)
			}
		}
		require.NoError(t, holder.Unlock())
	})
}

// Everybody queues at once, so nobody but the servers knows the order: the zxids of the nodes tell it.
func TestAcceptance013GrantsFollowTheZxidsOfTheNodesUnderContention(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var mu sync.Mutex
		var granted []zksync.Token
		var wg sync.WaitGroup
		for _, s := range jittery(v, 6) {
			m := zksync.NewMutex(s, proving.LockPath, zksync.WithHandover(0))
			for range 2 {
				wg.Go(func() {
					for range 10 {
						l := v.Lock(m)
						mu.Lock()
						granted = append(granted, l.Token())
						mu.Unlock()
						if l.Unlock() != nil {
							return
						}
					}
				})
			}
		}
		wg.Wait()
		require.Len(t, granted, 120)
		for i := 1; i < len(granted); i++ {
			require.Greater(t, granted[i].Zxid, granted[i-1].Zxid, "every grant is a node of its own, in order")
			require.Zero(t, granted[i].Seq)
		}
	})
}

func TestAcceptance024OneReleaseWakesAsManyWaitersHoweverManyThereAre(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(33, zksync.WithHandover(0))
		woken := func(waiting int) int {
			holder := v.Lock(ms[0])
			waiters := v.Line(ms[1 : 1+waiting]...)
			before := v.Events()
			require.NoError(t, holder.Unlock())
			l := v.Granted(waiters[0])
			v.Quiet()
			n := v.Events() - before
			for _, a := range waiters[1:] {
				require.True(t, a.Pending())
			}
			require.NoError(t, l.Unlock())
			for _, a := range waiters[1:] {
				require.NoError(t, v.Granted(a).Unlock())
			}
			v.Queued(proving.LockPath, 0)
			return n
		}
		few, many := woken(4), woken(32)
		// The waiter behind the holder, and the next one, which learns that it is next.
		require.LessOrEqual(t, few, 2)
		require.LessOrEqual(t, many, 2)
		require.Positive(t, many)
	})
}

func TestAHandoverOfZeroTakesTurnsBetweenProcesses(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2, zksync.WithHandover(0))
		holder := v.Lock(ms[0])
		local := proving.Begin(context.Background(), ms[0])
		v.Quiet()
		remote := v.Line(ms[1])[0]
		require.NoError(t, holder.Unlock())
		l := v.Granted(remote)
		v.Quiet()
		require.True(t, local.Pending(), "the local waiter was let in ahead of the remote one")
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(local).Unlock())
	})
}

// hog locks and unlocks with many goroutines on one handle until the remote waiter is granted, and
// returns how often.
func hog(v *proving.Env, m *zksync.Mutex, hold time.Duration, goroutines int, remote *proving.Attempt) int {
	v.T.Helper()
	var mu sync.Mutex
	grants := 0
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for remote.Pending() {
				l, err := m.LockContext(context.Background())
				if err != nil {
					return
				}
				mu.Lock()
				grants++
				mu.Unlock()
				time.Sleep(hold)
				_ = l.Unlock()
			}
		})
	}
	l := v.Granted(remote)
	mu.Lock()
	n := grants
	mu.Unlock()
	require.NoError(v.T, l.Unlock())
	wg.Wait()
	return n
}

func TestARemoteWaiterGetsItsTurnAfterTheBoundOfHandovers(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		const bound = 5
		local := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithHandover(bound))
		other := zksync.NewMutex(v.Session(), proving.LockPath)
		first := v.Lock(local)
		remote := v.Line(other)[0]
		time.AfterFunc(10*time.Millisecond, func() { _ = first.Unlock() })
		// One grant is first's own, made before the counting begins.
		require.LessOrEqual(t, hog(v, local, 0, 4, remote), bound)
		v.Queued(proving.LockPath, 0)
	})
}

func TestARemoteWaiterGetsItsTurnAfterTheTimeOfHandovers(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		// By number alone the default would let 32 through: 32 times 4 ms.
		ms := v.Mutexes(2)
		first := v.Lock(ms[0])
		remote := v.Line(ms[1])[0]
		released := time.Now()
		time.AfterFunc(time.Millisecond, func() { _ = first.Unlock() })
		n := hog(v, ms[0], 4*time.Millisecond, 4, remote)
		require.LessOrEqual(t, n, 3, "10 ms are over after the third hold of 4 ms")
		if v.Virtual {
			require.LessOrEqual(t, remote.At.Sub(released), 14*time.Millisecond)
		}
		v.Queued(proving.LockPath, 0)
	})
}

func TestEveryHandoverRaisesTheTokenOfTheSameNode(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithHandover(3))
		leases := []*zksync.Lease{v.Lock(m)}
		handOver := func() {
			last := leases[len(leases)-1]
			next := proving.Begin(context.Background(), m)
			v.Quiet()
			require.NoError(t, last.Unlock())
			leases = append(leases, v.Granted(next))
			require.Positive(t, leases[len(leases)-1].Token().Compare(last.Token()))
		}
		for range 10 {
			handOver()
		}
		for i, l := range leases {
			require.Equal(t, uint32(i), l.Token().Seq, "no other contender: the bound does not count")
			require.Equal(t, leases[0].Node(), l.Node())
		}
		stranger := v.Line(zksync.NewMutex(v.Session(), proving.LockPath))[0]
		if v.Virtual {
			for i := range 3 {
				handOver()
				require.Equal(t, uint32(11+i), leases[len(leases)-1].Token().Seq, "and counts from its coming")
			}
		} else {
			time.Sleep(20 * time.Millisecond) // more than the bound in time
		}
		last := leases[len(leases)-1]
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		require.NoError(t, last.Unlock())
		require.NoError(t, v.Granted(stranger).Unlock())
		l := v.Granted(next)
		require.NotEqual(t, leases[0].Node(), l.Node(), "after the bound it queues again")
		require.Zero(t, l.Token().Seq)
		require.Positive(t, l.Token().Compare(last.Token()))
		require.NoError(t, l.Unlock())
	})
}
