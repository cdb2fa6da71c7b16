package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A writer who reads on gives the write lock up during a disconnect that is shorter than the session: he still reads.
func TestAWriterWhoReadsAndUnlocksDuringADisconnectGoesOnReading(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m, other := v.rrw(s), zkrwmutex.New(v.session(), lockPath)
		m.Lock()
		m.RLock()
		heal := v.srv.Partition(s.ID())
		time.AfterFunc(2*time.Second, heal)
		m.Unlock()
		time.Sleep(3 * time.Second)
		_, err := other.TryLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired, "a writer got in although the reader's session was never lost")
		require.Equal(t, 1, m.ReadHoldCount())
		m.RUnlock()
		v.later()
		require.NoError(t, v.granted(call(context.Background(), other.LockContext)).Unlock())
	})
}

func TestAcceptance113ADowngradeKeepsItsDeadline(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		rw := zkrwmutex.New(v.session(), lockPath)
		l := v.granted(call(context.Background(), rw.LockContext))
		thaw := v.srv.Freeze()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := rw.Downgrade(ctx, l)
		took := time.Since(start)
		thaw()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, took, 400*time.Millisecond)
		v.later()
	})
}

// The server freezes just when Run has been granted and asks for the confirmation.
func TestAcceptance113RunKeepsItsDeadlineWhileItAwaitsTheConfirmation(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		e := v.candidate(v.session(), 0)
		hold := v.srv.Intercept(zktest.On(zktest.Check, electionPath+"/*").Times(1).Delay(5 * time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := e.Run(ctx, func(context.Context, *zksync.Lease) error { return nil })
		require.Equal(t, 1, hold.Fired())
		require.LessOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.later()
	})
}

// A writer who reads on unlocks during a disconnect, and reads once more before the servers could be asked.
func TestOneMoreReadWhileADowngradeIsUnderWay(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m := v.rrw(s)
		m.Lock()
		m.RLock()
		heal := v.srv.Partition(s.ID())
		time.AfterFunc(4*time.Second, heal)
		m.Unlock()
		m.RLock()
		time.Sleep(10 * time.Second)
		require.Equal(t, 2, m.ReadHoldCount())
		require.Len(t, v.children(lockPath), 1)
		m.RUnlock()
		m.RUnlock()
		v.later()
		require.Empty(t, v.children(lockPath))
	})
}

// Close has begun, and waits for the servers, when the function of a scope returns.
func TestAcceptance113AScopeWhoseSessionIsBeingClosedKeepsItsDeadline(t *testing.T) {
	scopes := map[string]func(v *env, s *zksync.Session, ctx context.Context, f func()) error{
		"Mutex": func(_ *env, s *zksync.Session, ctx context.Context, f func()) error {
			return zksync.NewMutex(s, lockPath).Do(ctx, func(context.Context, *zksync.Lease) error { f(); return nil })
		},
		"reentrant.Mutex": func(_ *env, s *zksync.Session, ctx context.Context, f func()) error {
			m := reentrant.NewMutex(zksync.NewMutex(s, lockPath))
			return m.Do(ctx, func(context.Context, *zksync.Lease) error { f(); return nil })
		},
		"MultiLock": func(_ *env, s *zksync.Session, ctx context.Context, f func()) error {
			m := zksync.MultiLock(zksync.NewMutex(s, lockPath), zksync.NewMutex(s, "/locks/b"))
			return m.Do(ctx, func(context.Context, zksync.Leases) error { f(); return nil })
		},
		"Weighted": func(_ *env, s *zksync.Session, ctx context.Context, f func()) error {
			w := zksemaphore.NewWeighted(s, semPath, 2)
			return w.Do(ctx, 1, func(context.Context, *zksync.Lease) error { f(); return nil })
		},
		"Election": func(v *env, s *zksync.Session, ctx context.Context, f func()) error {
			return zkelection.New(s, electionPath, zkelection.Candidate{ID: "c0"}).Run(ctx, func(context.Context, *zksync.Lease) error { f(); return nil })
		},
	}
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				s := v.session()
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				closed := make(chan error, 1)
				start := time.Now()
				_ = scope(v, s, ctx, func() {
					v.srv.DropReplies(s.ID())
					go func() { closed <- s.Close() }()
					v.quiet()
				})
				require.LessOrEqual(t, time.Since(start), 400*time.Millisecond)
				require.NoError(t, <-closed)
				v.later()
			})
		})
	}
}

// Close has given the hold up, and its owner, who locks again, finds it lost. The servers have not answered to that yet.
func TestAcceptance113AFurtherLevelOfALockWhoseSessionIsBeingClosedKeepsItsDeadline(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m := reentrant.NewMutex(zksync.NewMutex(s, lockPath))
		owner := reentrant.WithOwner(context.Background())
		_, err := m.LockContext(owner)
		require.NoError(t, err)
		v.srv.DropReplies(s.ID())
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		v.quiet()
		ctx, cancel := context.WithTimeout(owner, 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err = m.LockContext(ctx)
		require.Error(t, err)
		require.LessOrEqual(t, time.Since(start), 150*time.Millisecond)
		require.NoError(t, <-closed)
		v.later()
	})
}

// waitsInVain has m wait 300 ms, from start on, for a lock that is held. From now on the servers take 5 s for the first
// deletion, and for what the same session asks after it.
func (v *env) waitsInVain() (held *zksync.Lease, m *zksync.Mutex, start time.Time, a *attempt, slow *zktest.Interception) {
	held, m = v.lock(v.mutexes(1)[0]), v.mutexes(1)[0]
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	v.t.Cleanup(cancel)
	start = time.Now()
	a = begin(ctx, m)
	v.queued(lockPath, 2)
	slow = v.srv.Intercept(zktest.On(zktest.Delete, lockPath+"/*").Times(1).Delay(5 * time.Second))
	return held, m, start, a, slow
}

// The servers are slow to answer what comes after: the removal of the node that is gone, and the next attempt.
func TestAcceptance113AContenderWhoseNodeIsRemovedAtTheLastMomentKeepsItsDeadline(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		held, _, start, a, slow := v.waitsInVain()
		attempts := v.srv.RequestsBy(zktest.Multi)
		time.Sleep(299*time.Millisecond - time.Since(start))
		for _, name := range v.children(lockPath) {
			if node := lockPath + "/" + name; node != held.Path() {
				v.remove(node)
			}
		}
		v.awaits(a.done, "LockContext")
		require.Equal(t, 1, slow.Fired())
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		require.LessOrEqual(t, a.at.Sub(start), 350*time.Millisecond)
		v.later()
		require.Equal(t, attempts+1, v.srv.RequestsBy(zktest.Multi), "it was too late to notice")
		require.NoError(t, held.Unlock())
		v.queued(lockPath, 0)
	})
}

// Its own attempt has ended, and cleans up, when another goroutine begins one that does not wait.
func TestAcceptance113AWaiterWaitsForNoAttemptOfAnother(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		held, m, start, a, slow := v.waitsInVain()
		time.Sleep(340*time.Millisecond - time.Since(start))
		other := call(context.Background(), m.TryLockContext)
		v.awaits(a.done, "LockContext")
		require.True(t, other.pending())
		require.Equal(t, 1, slow.Fired())
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		require.LessOrEqual(t, a.at.Sub(start), 350*time.Millisecond)
		v.awaits(other.done, "TryLockContext")
		require.ErrorIs(t, other.err, zksync.ErrNotAcquired)
		require.NoError(t, held.Unlock())
		v.queued(lockPath, 0)
	})
}

// All of its levels were given back while it waited, so it gives the lock back that it has locked again.
func TestAcceptance113AWaitThatHasNoLevelLeftKeepsItsDeadline(t *testing.T) {
	type locker interface {
		sync.Locker
		LockContext(ctx context.Context) (*zksync.Lease, error)
	}
	locks := map[string]func(v *env) locker{
		"Mutex":   func(v *env) locker { return reentrant.NewMutex(v.mutexes(1)[0]) },
		"RWMutex": func(v *env) locker { return reentrant.NewRWMutex(zkrwmutex.New(v.session(), lockPath)) },
	}
	for name, lock := range locks {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				m := lock(v)
				c := zkcond.New(m, condPath)
				owner := reentrant.WithOwner(context.Background())
				l, err := m.LockContext(owner)
				require.NoError(t, err)
				inner, err := m.LockContext(owner)
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(owner, 300*time.Millisecond)
				defer cancel()
				start := time.Now()
				a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, inner) })
				v.queued(condPath, 1)
				require.NoError(t, inner.Unlock())
				require.NoError(t, l.Unlock())
				slow := v.srv.Intercept(zktest.On(zktest.Delete, lockPath+"/*").Delay(5 * time.Second))
				v.awaits(a.done, "WaitContext")
				require.Positive(t, slow.Fired())
				require.LessOrEqual(t, a.at.Sub(start), 400*time.Millisecond)
				slow.Remove()
				v.queued(lockPath, 0)
			})
		})
	}
}

// The same of one that is signalled just before its time is up: it locks again, gives that back, and uses the signal up.
func TestAcceptance113AWaitThatIsSignalledLateAndHasNoLevelLeftKeepsItsDeadline(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m := reentrant.NewMutex(zksync.NewMutex(s, lockPath))
		c := zkcond.New(m, condPath)
		owner := reentrant.WithOwner(context.Background())
		l, err := m.LockContext(owner)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(owner, 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, l) })
		v.queued(condPath, 1)
		require.NoError(t, l.Unlock())
		other := v.mutexes(1)[0]
		held := v.lock(other)
		slow := v.srv.Intercept(zktest.On(zktest.Delete, lockPath+"/*").Of(s.ID()).Delay(5 * time.Second))
		time.Sleep(290*time.Millisecond - time.Since(start))
		require.NoError(t, zkcond.New(other, condPath).SignalContext(context.Background(), held))
		require.NoError(t, held.Unlock())
		v.awaits(a.done, "WaitContext")
		require.Positive(t, slow.Fired())
		require.LessOrEqual(t, a.at.Sub(start), 400*time.Millisecond)
		slow.Remove()
		v.queued(lockPath, 0)
		v.queued(condPath, 0)
	})
}
