package mutex_test

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const lockDelay = 15 * time.Second

// delayed is the lock with a delay, through sessions of their own.
func delayed(v *proving.Env, n int) []*zksync.Mutex {
	return v.Mutexes(n, zksync.WithLockDelay(v.Span(lockDelay, 3*time.Second)))
}

// span is the delay of delayed.
func span(v *proving.Env) time.Duration { return v.Span(lockDelay, 3*time.Second) }

// holding is a holder with a delay, and its session.
func holding(v *proving.Env) (*zksync.Lease, *zksync.Session) {
	s := v.Session()
	return v.Lock(zksync.NewMutex(s, proving.LockPath, zksync.WithLockDelay(span(v)))), s
}

// marks is how many marks there are.
func marks(v *proving.Env) (n int) {
	for _, name := range v.Children(proving.LockPath) {
		if strings.HasPrefix(name, "held-") {
			n++
		}
	}
	return n
}

func TestAcceptance157AReleasedLockIsGrantedAtOnce(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := delayed(v, 3)
		l := v.Lock(ms[0])
		line := []*proving.Attempt{proving.Begin(context.Background(), ms[1])}
		v.Settled(proving.LockPath, 3) // with the mark
		start := time.Now()
		require.NoError(t, l.Unlock())
		next := v.Granted(line[0])
		v.AtOnce(start, "the grant to who waited")
		require.NoError(t, next.Unlock())
		require.NoError(t, v.Lock(ms[2]).Unlock())
		v.AtOnce(start, "the grant to who came")
		require.True(t, ms[0].TryLock())
		ms[0].Unlock()
		v.Left(proving.LockPath, 0, "released")
	})
}

func TestAcceptance157ALostLockIsGrantedLaterToWhoWaits(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		holder, s := holding(v)
		m := delayed(v, 1)[0]
		next := proving.Begin(context.Background(), m)
		v.Settled(proving.LockPath, 3)
		start := time.Now()
		v.Expire(s)
		after := v.Granted(next)
		v.Took(start, span(v), "the grant")
		require.ErrorIs(t, holder.Err(), zksync.ErrLost)
		require.Positive(t, after.Token().Compare(holder.Token()))
		start = time.Now()
		require.NoError(t, after.Unlock())
		require.NoError(t, v.Lock(m).Unlock())
		v.AtOnce(start, "the grant after a release")
		v.Left(proving.LockPath, 0, "released")
	})
}

// Nobody waited, so the servers have told nobody of the loss. The directory stays, because the mark is in it.
func TestAcceptance157ALostLockIsGrantedLaterToWhoComes(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		_, s := holding(v)
		require.NoError(t, v.Session().Close())
		told := s.ID()
		v.Expire(s)
		v.Eventually(func() bool { return s.ID() != told && s.ID() != 0 }, "no new session")
		v.Left(proving.LockPath, 1, "the mark")
		time.Sleep(v.Span(time.Hour, time.Second))
		start := time.Now()
		next := v.Lock(delayed(v, 1)[0])
		v.Took(start, span(v), "the grant")
		require.Equal(t, 1, marks(v), "its own")
		require.NoError(t, next.Unlock())
		v.Left(proving.LockPath, 0, "released")
	})
}

// The servers' clock says when the delay began.
func TestAcceptance157WhoComesLaterWaitsForTheRest(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		_, s := holding(v)
		first := v.Session()
		ctx, cancel := context.WithCancel(context.Background())
		a := proving.Begin(ctx, zksync.NewMutex(first, proving.LockPath, zksync.WithLockDelay(span(v))))
		v.Settled(proving.LockPath, 3)
		start := time.Now()
		v.Expire(s)
		time.Sleep(span(v) / 3)
		cancel()
		v.Failed(a)
		v.Left(proving.LockPath, 1, "the mark of the hold that was lost")
		// A restart: another session.
		require.NoError(t, v.Lock(delayed(v, 1)[0]).Unlock())
		v.Took(start, span(v), "the grant")
	})
}

func TestAcceptance157ALockInItsDelayIsNotAcquiredByATry(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		_, s := holding(v)
		ms := delayed(v, 2)
		told := s.ID()
		v.Expire(s)
		v.Eventually(func() bool { return s.ID() != told && s.ID() != 0 }, "no new session")
		start := time.Now()
		_, err := ms[0].TryLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		v.Left(proving.LockPath, 1, "the mark")
		if v.Virtual {
			time.Sleep(span(v) - time.Millisecond)
			require.False(t, ms[1].TryLock(), "one millisecond before its end")
			time.Sleep(time.Millisecond)
		} else {
			time.Sleep(span(v) + 100*time.Millisecond)
		}
		require.True(t, ms[1].TryLock(), "the first try has begun the delay, and another process finds out")
		v.Took(start, v.Span(span(v), span(v)+100*time.Millisecond), "the delay")
		ms[1].Unlock()
		v.Left(proving.LockPath, 0, "released")
	})
}

// P7.
func TestAcceptance157TheContextBoundsTheWaitForTheDelay(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		_, s := holding(v)
		m := delayed(v, 1)[0]
		v.Expire(s)
		ctx, start := proving.Soon(t)
		_, err := m.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.Within(start, proving.Deadline+50*time.Millisecond, "LockContext")
		v.Left(proving.LockPath, 1, "the mark")
	})
}

func TestAcceptance157CloseEndsTheWaitForTheDelay(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		_, s := holding(v)
		ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
		defer cancel()
		waiter, err := v.Connect(ctx)
		require.NoError(t, err)
		a := proving.Begin(context.Background(), zksync.NewMutex(waiter, proving.LockPath, zksync.WithLockDelay(span(v))))
		v.Settled(proving.LockPath, 3)
		v.Expire(s)
		v.Left(proving.LockPath, 2, "an entry and the mark")
		require.NoError(t, waiter.Close())
		require.ErrorIs(t, v.Failed(a), zksync.ErrClosed)
		v.Left(proving.LockPath, 1, "the mark")
	})
}

// What ends a hold, and whether the next one waits.
func TestAcceptance157WhatCountsAsALoss(t *testing.T) {
	option := func(v *proving.Env) zksync.Option { return zksync.WithLockDelay(span(v)) }
	closed := func(t *testing.T, v *proving.Env, lock func(m *zksync.Mutex), opts ...zksync.Option) {
		s, err := v.Connect(t.Context())
		require.NoError(t, err)
		lock(zksync.NewMutex(s, proving.LockPath, append(opts, option(v))...))
		require.NoError(t, s.Close())
	}
	for name, c := range map[string]struct {
		lost bool
		end  func(t *testing.T, v *proving.Env)
	}{
		"Unlock":                          {false, func(t *testing.T, v *proving.Env) { v.Unlocks(v.Lock(delayed(v, 1)[0]), nil) }},
		"Close":                           {false, func(t *testing.T, v *proving.Env) { closed(t, v, func(m *zksync.Mutex) { v.Lock(m) }) }},
		"Close of a hold without a lease": {false, func(t *testing.T, v *proving.Env) { closed(t, v, (*zksync.Mutex).Lock) }},
		"Close while it lingers": {false, func(t *testing.T, v *proving.Env) {
			closed(t, v, func(m *zksync.Mutex) { m.Lock(); m.Unlock() }, zksync.WithLinger(time.Hour))
		}},
		"the end of lingering": {false, func(t *testing.T, v *proving.Env) {
			m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(time.Hour), option(v))
			m.Lock()
			m.Unlock()
		}},
		"an asynchronous Unlock": {false, func(t *testing.T, v *proving.Env) {
			v.Unlocks(v.Lock(zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithAsyncUnlock(), option(v))), nil)
		}},
		"Do": {false, func(t *testing.T, v *proving.Env) {
			require.NoError(t, delayed(v, 1)[0].Do(t.Context(), func(context.Context, *zksync.Lease) error { return nil }))
		}},
		"a reentrant lock": {false, func(t *testing.T, v *proving.Env) {
			m := reentrant.NewMutex(delayed(v, 1)[0])
			m.Lock()
			m.Lock()
			m.Unlock()
			m.Unlock()
		}},
		"a wait for a condition": {false, func(t *testing.T, v *proving.Env) {
			m := delayed(v, 1)[0]
			c := zkcond.New(m, proving.CondPath)
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				_, _ = c.WaitContext(ctx, v.Lock(m))
			}()
			v.Queued(proving.CondPath, 1)
			t.Cleanup(cancel)
		}},
		"a wait that gives up": {false, func(t *testing.T, v *proving.Env) {
			ms := delayed(v, 2)
			l := v.Lock(ms[0])
			ctx, cancel := context.WithCancel(context.Background())
			a := proving.Begin(ctx, ms[1])
			v.Settled(proving.LockPath, 3)
			cancel()
			v.Failed(a)
			require.NoError(t, l.Unlock())
		}},
		"the end of the session": {true, func(t *testing.T, v *proving.Env) {
			_, s := holding(v)
			v.Expire(s)
		}},
		"the removal of the node": {true, func(t *testing.T, v *proving.Env) {
			l, _ := holding(v)
			v.Remove(l.Node())
			v.Awaits(l.Done(), "the holder to be told")
		}},
		"the bound of a hold": {true, func(t *testing.T, v *proving.Env) {
			l := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithMaxHold(time.Second), option(v)))
			v.Awaits(l.Done(), "the end of the bound")
			require.ErrorIs(t, l.Err(), zksync.ErrMaxHold)
		}},
		"the bound of a hold without a lease": {true, func(t *testing.T, v *proving.Env) {
			m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithMaxHold(time.Second), option(v))
			m.Lock()
			v.Awaits(m.Lease().Done(), "the end of the bound")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				next := delayed(v, 1)[0]
				c.end(t, v)
				start := time.Now()
				l := v.Lock(next)
				if c.lost {
					v.Took(start, span(v), "the grant")
				} else {
					v.AtOnce(start, "the grant")
				}
				require.NoError(t, l.Unlock())
				v.Left(proving.LockPath, 0, "released")
			})
		})
	}
}

// The goroutines of the process whose bound has passed wait like everybody else.
func TestAcceptance157TheSameObjectWaitsToo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithMaxHold(time.Second), zksync.WithLockDelay(span(v)))
		start := time.Now()
		l := v.Lock(m)
		next := proving.Begin(context.Background(), m)
		after := v.Granted(next)
		v.Took(start, time.Second+span(v), "the grant")
		require.ErrorIs(t, l.Unlock(), zksync.ErrMaxHold)
		require.NoError(t, after.Unlock())
	})
}

// A hand-over inside a process is a release. In real time 10 ms pass, after which the process queues again.
func TestAcceptance157AHandoverNeedsNoDelayAndNoRequest(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(proving.Calm(v), proving.LockPath, zksync.WithLockDelay(time.Hour))
		l := v.Lock(m)
		for range 3 {
			next := proving.Begin(context.Background(), m)
			v.Quiet()
			v.Costs(0, func() {
				require.NoError(t, l.Unlock())
				l = v.Granted(next)
			})
		}
		require.NoError(t, l.Unlock())

		strict := zksync.NewMutex(proving.Calm(v), proving.LockPath, zksync.WithHandover(0), zksync.WithLockDelay(time.Hour))
		l = v.Lock(strict)
		next := proving.Begin(context.Background(), strict)
		v.Quiet()
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(next).Unlock())
		v.Left(proving.LockPath, 0, "released")
	})
}

func TestAcceptance157WhatADelayCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		open := func() *zksync.Mutex {
			return zksync.NewMutex(proving.Calm(v), proving.LockPath, zksync.WithLockDelay(time.Hour))
		}
		m, other := open(), open()
		var l *zksync.Lease
		v.Costs(3, func() { l = v.Lock(m) }, "the first look at the path, the entry, and the mark")
		var a *proving.Attempt
		v.Costs(4, func() { a = proving.Begin(context.Background(), other) }, "as without")
		v.Costs(3, func() {
			require.NoError(t, l.Unlock())
			l = v.Granted(a)
		}, "the release, and a listing and the mark of the next one")
		v.Costs(1, func() { require.NoError(t, l.Unlock()) })
	})
}

func TestAcceptance157ContendersThatDifferAreToldSo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		l, s := holding(v)
		other := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLockDelay(time.Minute))
		without := zksync.NewMutex(v.Session(), proving.LockPath)
		rw := zkrwmutex.New(v.Session(), proving.LockPath)
		for _, call := range []func(context.Context) (*zksync.Lease, error){
			other.LockContext, other.TryLockContext, without.LockContext, without.TryLockContext, rw.LockContext, rw.RLockContext,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := call(ctx)
			cancel()
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, span(v).String())
			v.Left(proving.LockPath, 2, "the holder and its mark")
		}
		// After the loss there is nobody to agree with, but the delay is that of the hold that was lost.
		told := l.Done()
		v.Expire(s)
		v.Awaits(told, "the holder to be told")
		start := time.Now()
		v.Left(proving.LockPath, 1, "the mark")
		_, err := without.LockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse, "it must not be granted before the delay is over")
		require.NoError(t, v.Lock(other).Unlock())
		v.Took(start, span(v), "the grant")
		require.NoError(t, v.Lock(without).Unlock(), "nothing is left")
	})
}

func TestAcceptance157ADelayIsForMutexesAndElectionsOnly(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		_, err := zksync.NewMutex(s, proving.LockPath, zksync.WithLockDelay(0)).LockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = zkrwmutex.New(s, proving.LockPath, zksync.WithLockDelay(time.Second)).LockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		err = zksemaphore.NewWeighted(s, proving.SemPath, 3, zksync.WithLockDelay(time.Second)).Acquire(t.Context(), 1)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.Empty(t, v.Children("/locks"))
	})
}

// A lock of go-zookeeper fails if a child of its directory has a name without a number.
func TestAcceptance157OtherLibrariesGoOnBesideTheMark(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l, s := holding(v)
		conn := v.Server.Connect(t, 10*time.Second)
		theirs := zk.NewLock(conn, proving.LockPath, zk.WorldACL(zk.PermAll))
		granted := make(chan error)
		go func() { granted <- theirs.Lock() }()
		v.Settled(proving.LockPath, 3)
		start := time.Now()
		v.Expire(s)
		require.NoError(t, <-granted)
		v.AtOnce(start, "it knows of no delay")
		v.Awaits(l.Done(), "the holder to be told")
		next := proving.Begin(context.Background(), delayed(v, 1)[0])
		v.Settled(proving.LockPath, 3)
		require.True(t, next.Pending())
		require.NoError(t, theirs.Unlock())
		require.NoError(t, v.Granted(next).Unlock())
	})
}

func TestAcceptance157AtTheEndOfTheNumbers(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		v.Server.SetSequence(proving.LockPath, math.MaxInt32-3)
		ms := delayed(v, 3)
		for range 4 {
			l := v.Lock(ms[0])
			a, b := proving.Begin(context.Background(), ms[1]), proving.Begin(context.Background(), ms[2])
			v.Settled(proving.LockPath, 4)
			start := time.Now()
			require.NoError(t, l.Unlock())
			for range 2 {
				select {
				case <-a.Done:
					require.NoError(t, v.Granted(a).Unlock())
					a.Done = nil
				case <-b.Done:
					require.NoError(t, v.Granted(b).Unlock())
					b.Done = nil
				}
			}
			v.AtOnce(start, "the grants")
		}
		v.Left(proving.LockPath, 0, "released")
	})
}

// The request for the mark is on its way when somebody removes the entry. Then others may be granted already.
func TestAcceptance157AMarkIsNotMadeWithoutTheEntry(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := delayed(v, 1)[0]
		var held atomic.Bool
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op != zktest.Multi || marks(v) > 0 || len(v.Children(proving.LockPath)) == 0 || held.Swap(true) {
				return zktest.Verdict{}
			}
			return zktest.Verdict{Delay: time.Second}
		})
		a := proving.Begin(context.Background(), m)
		v.Queued(proving.LockPath, 1)
		v.Quiet()
		require.True(t, held.Load(), "the second transaction is that of the mark")
		v.Remove(proving.LockPath + "/" + v.Children(proving.LockPath)[0])
		l := v.Granted(a)
		require.True(t, v.Exists(l.Node()), "its node was removed before it was granted")
		require.NoError(t, l.Unlock())
		v.Later()
		require.Empty(t, v.Children(proving.LockPath))
	})
}

// Whatever happens to one request, a release is no loss, and nothing is left. The delay is so long that a test in
// which it is waited for does not end in time.
func TestAcceptance157WithEveryFaultAReleaseIsNoLoss(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ms := v.Mutexes(2, zksync.WithLockDelay(100*time.Hour))
		return func(name string) {
			l := v.Lock(ms[0])
			next := proving.Begin(context.Background(), ms[1])
			v.PassAWhile()
			require.NoError(t, l.Unlock(), name)
			v.PassAWhile()
			require.False(t, next.Pending(), name)
			after := v.Granted(next)
			require.Positive(t, after.Token().Compare(l.Token()), name)
			require.NoError(t, after.Unlock(), name)
			v.Later()
			require.Empty(t, v.Children(proving.LockPath), name)
		}
	})
}

// Whatever request a holder or waiter makes when its session ends: after a loss nobody holds for the time of the delay.
func TestAcceptance157WhereverTheSessionEndsTheDelayHolds(t *testing.T) {
	const delay = 10 * time.Minute
	proving.EveryTrouble(t, "expires", proving.Expires, func(t *testing.T, v *proving.Env) func(string, func()) {
		ms := v.Mutexes(2, zksync.WithLockDelay(delay))
		return func(name string, calm func()) {
			var lost atomic.Pointer[time.Time] // when a holder was told
			isLost := func() {
				now := time.Now()
				lost.CompareAndSwap(nil, &now)
			}
			hold := func(m *zksync.Mutex) {
				l, err := m.LockContext(context.Background())
				require.NoError(t, err, name)
				if at := lost.Load(); at != nil {
					require.GreaterOrEqual(t, time.Since(*at), delay, name)
				}
				select {
				case <-l.Done():
					isLost()
				case <-time.After(time.Second):
				}
				if l.Unlock() != nil {
					isLost()
				}
			}
			first, second := make(chan struct{}), make(chan struct{})
			go func() { hold(ms[0]); close(first) }()
			v.PassAWhile()
			go func() { hold(ms[1]); close(second) }()
			<-first
			<-second
			calm()
			require.NoError(t, v.Lock(ms[0]).Unlock(), name)
			v.Later()
			require.Empty(t, v.Children(proving.LockPath), name)
		}
	})
}

// The context ends at each request of a waiter in the delay.
func TestAcceptance157WhoeverGivesUpInTheDelayLeavesTheMark(t *testing.T) {
	proving.EveryRequest(t, "cancelled", func(s *proving.Strike) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			_, dead := holding(v)
			m := delayed(v, 1)[0]
			v.Expire(dead)
			v.Quiet()
			ctx, cancel := v.CancelledAt(s, 0)
			defer cancel()
			start := time.Now()
			l, err := m.LockContext(ctx)
			if err == nil {
				require.GreaterOrEqual(t, time.Since(start), span(v), s.Name)
				require.NoError(t, l.Unlock(), s.Name)
			}
			early := time.Since(start) < span(v)
			time.Sleep(2 * time.Second) // what was held is applied, and what is left is removed
			v.Quiet()
			if early {
				require.Equal(t, 1, marks(v), "%s: the delay is not over", s.Name)
			}
			require.Len(t, v.Children(proving.LockPath), marks(v), s.Name)
			require.NoError(t, v.Lock(m).Unlock(), s.Name)
			require.GreaterOrEqual(t, time.Since(start), span(v), s.Name)
			require.LessOrEqual(t, time.Since(start), 2*span(v)+5*time.Second, s.Name)
		})
	})
}

// The watch for contenders, whose answer is still to come, ends with the session. It is not what gives the lock up. Without that
// half of the runs of this test are red: the watch must end just before Close comes to the lock.
func TestCloseOfASessionThatLingersIsNoLoss(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		next := delayed(v, 1)[0]
		for range 100 {
			s, err := v.Connect(t.Context())
			require.NoError(t, err)
			m := zksync.NewMutex(s, proving.LockPath, zksync.WithLinger(time.Hour), zksync.WithLockDelay(span(v)))
			m.Lock()
			m.Unlock()
			require.NoError(t, s.Close())
			start := time.Now()
			v.Unlocks(v.Lock(next), nil)
			v.AtOnce(start, "the grant")
		}
	})
}
