package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAcceptance115AnUncontendedLockAndUnlockAreTwoRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		m := zksync.NewMutex(proving.Calm(v), proving.LockPath)
		v.Costs(2, func() { m.Lock() }, "the first look at the path, and the entry")
		v.Costs(1, func() { m.Unlock() })
		const rounds = 50
		v.Costs(2*rounds, func() {
			for range rounds {
				l, err := m.LockContext(context.Background())
				require.NoError(t, err)
				require.NoError(t, l.Unlock())
			}
		})
	})
}

func TestAcceptance115AnUncontendedLockIsGrantedAfterOneRoundTrip(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		s := proving.Calm(v)
		m := zksync.NewMutex(s, proving.LockPath)
		require.NoError(t, v.Lock(m).Unlock()) // the session has looked at the path
		v.Server.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
		start := time.Now()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		v.Took(start, 50*time.Millisecond, "LockContext")
		start = time.Now()
		require.NoError(t, l.Unlock())
		v.Took(start, 50*time.Millisecond, "Unlock")
	})
}

// A slow answer is no reason to send the delete again: neither for who gives up, nor for who unlocks.
func TestAcceptance115WhoLeavesThroughASlowNetworkAsksOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(zksync.NewMutex(proving.Calm(v), proving.LockPath))
		s := proving.Calm(v)
		ctx, cancel := context.WithCancel(t.Context())
		waiter := proving.Begin(ctx, zksync.NewMutex(s, proving.LockPath))
		v.Settled(proving.LockPath, 2)
		heal := v.Server.Delay(s.ID(), 100*time.Millisecond, 100*time.Millisecond)
		cancel()
		require.ErrorIs(t, v.Failed(waiter), context.Canceled)
		time.Sleep(time.Second)
		require.Equal(t, 1, v.Server.RequestsBy(zktest.Delete), "who gives up")
		v.Queued(proving.LockPath, 1)

		heal()
		require.NoError(t, holder.Unlock())
		lease := v.Lock(zksync.NewMutex(s, proving.LockPath))
		heal = v.Server.Delay(s.ID(), 5*time.Second, 5*time.Second)
		defer heal()
		require.NoError(t, lease.Unlock())
		time.Sleep(30 * time.Second)
		require.Equal(t, 3, v.Server.RequestsBy(zktest.Delete), "who unlocks")
		v.Queued(proving.LockPath, 0)
	})
}

// The one request of a hand-over is the holder's delete.
func TestAcceptance115AHandoverToAWaiterNeedsNoRequestOfTheWaiter(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(zksync.NewMutex(proving.Calm(v), proving.LockPath))
		waiter := v.Line(zksync.NewMutex(proving.Calm(v), proving.LockPath))[0]
		v.Costs(1, func() {
			require.NoError(t, holder.Unlock())
			v.Granted(waiter)
		})
		require.NoError(t, waiter.Lease.Unlock())
	})
}

// Nobody who joins far behind reads more on the critical path either: its blockers have become few by then.
func TestAcceptance115TheFifthOfAQueueIsGrantedWithoutARequest(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		var ms []*zksync.Mutex
		for range 6 {
			ms = append(ms, zksync.NewMutex(proving.Calm(v), proving.LockPath))
		}
		holder := v.Lock(ms[0])
		waiters := v.Line(ms[1:]...)
		for i, a := range waiters {
			if i == len(waiters)-1 {
				break
			}
			require.NoError(t, holder.Unlock())
			holder = v.Granted(a)
		}
		last := waiters[len(waiters)-1]
		v.Costs(1, func() {
			require.NoError(t, holder.Unlock())
			v.Granted(last)
		})
		require.NoError(t, last.Lease.Unlock())
	})
}

// The waiter is granted when the event arrives, one way through its slow network.
func TestAcceptance115AHandoverTakesOneWayThroughTheWaitersNetwork(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for _, ahead := range []int{1, 2, 5} {
			ms := v.Mutexes(ahead)
			s := proving.Calm(v)
			holder := v.Lock(ms[0])
			others := v.Line(ms[1:]...)
			v.Server.Delay(s.ID(), 40*time.Millisecond, 30*time.Millisecond)
			last := proving.Begin(context.Background(), zksync.NewMutex(s, proving.LockPath))
			v.Queued(proving.LockPath, ahead+1)
			time.Sleep(time.Second)
			for _, a := range others {
				require.NoError(t, holder.Unlock())
				holder = v.Granted(a)
				time.Sleep(time.Second)
			}
			start := time.Now()
			require.NoError(t, holder.Unlock())
			l := v.Granted(last)
			require.Equal(t, 30*time.Millisecond, last.At.Sub(start), "behind %d", ahead)
			require.NoError(t, l.Unlock())
			v.Queued(proving.LockPath, 0)
		}
	})
}

func TestAcceptance115TwentyGoroutinesOnOneObjectDrainWithFourRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		m := zksync.NewMutex(proving.Calm(v), proving.LockPath)
		v.CostsAtMost(4, func() {
			first := v.Lock(m)
			var others []*proving.Attempt
			for range 19 {
				a := proving.Begin(context.Background(), m)
				others = append(others, a)
				go func() {
					<-a.Done
					_ = a.Lease.Unlock()
				}()
			}
			v.Quiet() // all of them wait
			require.NoError(t, first.Unlock())
			for _, a := range others {
				v.Granted(a)
			}
		})
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance115AFailedTryLockIsAtMostTwoRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		holder := zksync.NewMutex(proving.Calm(v), proving.LockPath)
		other := zksync.NewMutex(proving.Calm(v), proving.LockPath)
		held := v.Lock(holder)
		fails := func(m *zksync.Mutex) func() {
			return func() {
				_, err := m.TryLockContext(context.Background())
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
			}
		}
		v.Costs(2, fails(other))
		v.Costs(0, fails(holder), "this process knows that it holds")
		require.NoError(t, held.Unlock())
	})
}

func TestAcceptance115LockingAgainWhileLingeringIsNoRequest(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(proving.Calm(v), proving.LockPath, zksync.WithLinger(30*time.Second))
		require.NoError(t, v.Lock(m).Unlock())
		v.Costs(0, func() {
			for range 100 {
				m.Lock()
				m.Unlock()
				require.True(t, m.TryLock())
				m.Unlock()
			}
		})
		require.Len(t, v.Children(proving.LockPath), 1)
	})
}
