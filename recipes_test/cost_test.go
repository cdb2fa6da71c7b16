package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// calm opens a session that stays alive however busy the machine is.
func calm(v *env) *zksync.Session {
	v.t.Helper()
	return v.session(zksync.WithTimeout(time.Minute))
}

// counted is how many requests f makes, until nothing happens any more.
func (v *env) counted(f func()) int {
	v.t.Helper()
	v.quiet()
	before := v.requests()
	tell := v.tellOperations()
	f()
	v.quiet()
	tell()
	return v.requests() - before
}

// costs checks how many requests f makes.
func (v *env) costs(want int, f func(), why ...any) {
	v.t.Helper()
	require.Equal(v.t, want, v.counted(f), why...)
}

// costsAtMost checks that f makes no more requests than that.
func (v *env) costsAtMost(most int, f func(), why ...any) {
	v.t.Helper()
	require.LessOrEqual(v.t, v.counted(f), most, why...)
}

func TestAcceptance115AnUncontendedLockAndUnlockAreTwoRequests(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		v.put(lockPath, "")
		m := zksync.NewMutex(calm(v), lockPath)
		v.costs(1, func() { m.Lock() })
		v.costs(1, func() { m.Unlock() })
		const rounds = 50
		v.costs(2*rounds, func() {
			for range rounds {
				l, err := m.LockContext(context.Background())
				require.NoError(t, err)
				require.NoError(t, l.Unlock())
			}
		})
	})
}

func TestAcceptance115AnUncontendedLockIsGrantedAfterOneRoundTrip(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(lockPath, "")
		s := calm(v)
		m := zksync.NewMutex(s, lockPath)
		v.srv.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
		start := time.Now()
		l := v.lock(m)
		v.took(start, 50*time.Millisecond, "LockContext")
		start = time.Now()
		require.NoError(t, l.Unlock())
		v.took(start, 50*time.Millisecond, "Unlock")
	})
}

// The one request of a hand-over is the holder's delete.
func TestAcceptance115AHandoverToAWaiterNeedsNoRequestOfTheWaiter(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		holder := v.lock(zksync.NewMutex(calm(v), lockPath))
		waiter := v.line(zksync.NewMutex(calm(v), lockPath))[0]
		v.costs(1, func() {
			require.NoError(t, holder.Unlock())
			v.granted(waiter)
		})
		require.NoError(t, waiter.lease.Unlock())
	})
}

// Nobody who joins far behind reads more on the critical path either: its blockers have become few by then.
func TestAcceptance115TheFifthOfAQueueIsGrantedWithoutARequest(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		var ms []*zksync.Mutex
		for range 6 {
			ms = append(ms, zksync.NewMutex(calm(v), lockPath))
		}
		holder := v.lock(ms[0])
		waiters := v.line(ms[1:]...)
		for i, a := range waiters {
			if i == len(waiters)-1 {
				break
			}
			require.NoError(t, holder.Unlock())
			holder = v.granted(a)
		}
		last := waiters[len(waiters)-1]
		v.costs(1, func() {
			require.NoError(t, holder.Unlock())
			v.granted(last)
		})
		require.NoError(t, last.lease.Unlock())
	})
}

// The waiter is granted when the event arrives, one way through its slow network.
func TestAcceptance115AHandoverTakesOneWayThroughTheWaitersNetwork(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		for _, ahead := range []int{1, 2, 5} {
			ms := v.mutexes(ahead)
			s := calm(v)
			holder := v.lock(ms[0])
			others := v.line(ms[1:]...)
			v.srv.Delay(s.ID(), 40*time.Millisecond, 30*time.Millisecond)
			last := begin(context.Background(), zksync.NewMutex(s, lockPath))
			v.queued(lockPath, ahead+1)
			time.Sleep(time.Second)
			for _, a := range others {
				require.NoError(t, holder.Unlock())
				holder = v.granted(a)
				time.Sleep(time.Second)
			}
			start := time.Now()
			require.NoError(t, holder.Unlock())
			l := v.granted(last)
			require.Equal(t, 30*time.Millisecond, last.at.Sub(start), "behind %d", ahead)
			require.NoError(t, l.Unlock())
			v.queued(lockPath, 0)
		}
	})
}

func TestAcceptance115TwentyGoroutinesOnOneObjectDrainWithFourRequests(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		v.put(lockPath, "")
		m := zksync.NewMutex(calm(v), lockPath)
		v.costsAtMost(4, func() {
			first := v.lock(m)
			var others []*attempt
			for range 19 {
				a := begin(context.Background(), m)
				others = append(others, a)
				go func() {
					<-a.done
					_ = a.lease.Unlock()
				}()
			}
			v.quiet() // all of them wait
			require.NoError(t, first.Unlock())
			for _, a := range others {
				v.granted(a)
			}
		})
		v.queued(lockPath, 0)
	})
}

func TestAcceptance115AFailedTryLockIsAtMostTwoRequests(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		holder := zksync.NewMutex(calm(v), lockPath)
		other := zksync.NewMutex(calm(v), lockPath)
		held := v.lock(holder)
		fails := func(m *zksync.Mutex) func() {
			return func() {
				_, err := m.TryLockContext(context.Background())
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
			}
		}
		v.costs(2, fails(other))
		v.costs(0, fails(holder), "this process knows that it holds")
		require.NoError(t, held.Unlock())
	})
}

func TestAcceptance115LockingAgainWhileLingeringIsNoRequest(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(calm(v), lockPath, zksync.WithLinger(30*time.Second))
		require.NoError(t, v.lock(m).Unlock())
		v.costs(0, func() {
			for range 100 {
				m.Lock()
				m.Unlock()
				require.True(t, m.TryLock())
				m.Unlock()
			}
		})
		require.Len(t, v.children(lockPath), 1)
	})
}
