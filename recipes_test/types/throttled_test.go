package types_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// busyFor is for how long the servers refuse every request.
const busyFor = 5 * time.Second

// locker is what the locks have in common.
type locker interface {
	Lock()
	TryLock() bool
	Unlock()
}

// errorless are the calls that have no error to return. Each prepares its call, then calls busy, from which on the servers
// refuse every request for busyFor, and then makes the call and sees that it has done what it is for.
var errorless = map[string]func(v *proving.Env, s, other *zksync.Session, busy func()){
	"Mutex": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		locks(v, zksync.NewMutex(s, "/b/mutex"), zksync.NewMutex(other, "/b/mutex"), busy)
	},
	"Mutex, waiting": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		waits(v, zksync.NewMutex(s, "/b/mutex"), zksync.NewMutex(other, "/b/mutex"), "/b/mutex", busy)
	},
	"Mutex.TryLock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		attempts(v, zksync.NewMutex(s, "/b/mutex"), zksync.NewMutex(other, "/b/mutex"), busy)
	},
	"Mutex.Unlock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		unlocks(v, zksync.NewMutex(s, "/b/mutex"), zksync.NewMutex(other, "/b/mutex"), busy)
	},
	"Multi": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		locks(v, multi(s), multi(other), busy)
	},
	"Multi.TryLock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		attempts(v, multi(s), multi(other), busy)
	},
	"Multi.Unlock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		unlocks(v, multi(s), multi(other), busy)
	},
	"RWMutex": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		locks(v, zkrwmutex.New(s, "/b/rw"), zkrwmutex.New(other, "/b/rw"), busy)
	},
	"RWMutex.TryLock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		attempts(v, zkrwmutex.New(s, "/b/rw"), zkrwmutex.New(other, "/b/rw"), busy)
	},
	"RWMutex.Unlock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		unlocks(v, zkrwmutex.New(s, "/b/rw"), zkrwmutex.New(other, "/b/rw"), busy)
	},
	"RWMutex.RLock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		locks(v, readers{zkrwmutex.New(s, "/b/rw")}, zkrwmutex.New(other, "/b/rw"), busy)
	},
	"RWMutex.TryRLock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		attempts(v, readers{zkrwmutex.New(s, "/b/rw")}, zkrwmutex.New(other, "/b/rw"), busy)
	},
	"RWMutex.RUnlock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		unlocks(v, readers{zkrwmutex.New(s, "/b/rw")}, zkrwmutex.New(other, "/b/rw"), busy)
	},
	"reentrant.Mutex": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		locks(v, reentrant.NewMutex(zksync.NewMutex(s, "/b/mutex")), zksync.NewMutex(other, "/b/mutex"), busy)
	},
	"reentrant.Mutex.TryLock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		attempts(v, reentrant.NewMutex(zksync.NewMutex(s, "/b/mutex")), zksync.NewMutex(other, "/b/mutex"), busy)
	},
	"reentrant.Mutex.Unlock": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		unlocks(v, reentrant.NewMutex(zksync.NewMutex(s, "/b/mutex")), zksync.NewMutex(other, "/b/mutex"), busy)
	},
	"reentrant.RWMutex": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		locks(v, reentrant.NewRWMutex(zkrwmutex.New(s, "/b/rw")), zkrwmutex.New(other, "/b/rw"), busy)
	},
	"reentrant.RWMutex, a read lock below": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		rw := reentrant.NewRWMutex(zkrwmutex.New(s, "/b/rw"))
		rw.Lock()
		busy()
		rw.RLock()
		rw.Unlock() // the downgrade
		require.Equal(v.T, 1, rw.ReadHoldCount())
		rw.RUnlock()
		passes(v, zkrwmutex.New(other, "/b/rw"))
	},
	"Weighted.Release": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		w := zksemaphore.NewWeighted(s, "/b/sem", 2)
		require.NoError(v.T, w.Acquire(v.T.Context(), 2))
		busy()
		w.Release(1)
		w.Release(1)
		require.NoError(v.T, zksemaphore.NewWeighted(other, "/b/sem", 2).Acquire(v.T.Context(), 2))
	},
	"Weighted.TryAcquire": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		w := zksemaphore.NewWeighted(s, "/b/sem", 2)
		require.True(v.T, w.TryAcquire(1))
		w.Release(1)
		busy()
		if w.TryAcquire(2) {
			w.Release(2)
		}
		require.NoError(v.T, zksemaphore.NewWeighted(other, "/b/sem", 2).Acquire(v.T.Context(), 2))
	},
	"Cond.Wait": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		c, o := zkcond.New(zksync.NewMutex(s, "/b/m"), "/b/cond"), zkcond.New(zksync.NewMutex(other, "/b/m"), "/b/cond")
		c.L.Lock()
		busy()
		done := make(chan struct{})
		go func() {
			defer close(done)
			v.Queued("/b/cond", 1)
			o.L.Lock()
			o.Signal()
			o.L.Unlock()
		}()
		c.Wait()
		c.L.Unlock()
		<-done
	},
	"Cond.Signal": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		signals(v, s, other, busy, (*zkcond.Cond).Signal)
	},
	"Cond.Broadcast": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		signals(v, s, other, busy, (*zkcond.Cond).Broadcast)
	},
	"WaitGroup.Add": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		g := zkwaitgroup.New(s, "/b/group")
		busy()
		g.Add(2)
		v.Remaining(zkwaitgroup.New(other, "/b/group"), 2)
	},
	"WaitGroup.Done": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		g := zkwaitgroup.New(s, "/b/group")
		g.Add(2)
		busy()
		g.Done()
		v.Remaining(zkwaitgroup.New(other, "/b/group"), 1)
	},
	"WaitGroup.Go and Wait": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		g := zkwaitgroup.New(s, "/b/group")
		var ran atomic.Bool
		busy()
		g.Go(func() { ran.Store(true) })
		g.Wait()
		require.True(v.T, ran.Load())
	},
	"WaitGroup.Wait": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		zkwaitgroup.New(other, "/b/group").Add(1)
		busy()
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(busyFor / 2)
			zkwaitgroup.New(other, "/b/group").Done()
		}()
		zkwaitgroup.New(s, "/b/group").Wait()
		<-done
	},
	"Once.Do": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		n := 0
		busy()
		zkonce.New(s, "/b/once").Do(func() { n++ })
		require.Equal(v.T, 1, n)
		zkonce.New(other, "/b/once").Do(func() { n++ })
		require.Equal(v.T, 1, n)
	},
	"Once.Do, inside its function": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		n := 0
		zkonce.New(s, "/b/once").Do(func() { n++; busy() })
		zkonce.New(other, "/b/once").Do(func() { n++ })
		require.Equal(v.T, 1, n)
	},
	"OnceValue": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		busy()
		require.Equal(v.T, 7, zkonce.OnceValue(s, "/b/once", func() int { return 7 })())
		require.Equal(v.T, 7, zkonce.OnceValue(other, "/b/once", func() int { return 8 })())
	},
	"OnceValues": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		busy()
		n, err := zkonce.OnceValues(s, "/b/once", func() (int, error) { return 7, errors.New("kept") })()
		require.Equal(v.T, 7, n)
		require.EqualError(v.T, err, "kept")
	},
	"Promise.Done": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		busy()
		done := zkonce.NewPromise[int](s, "/b/promise").Done()
		_, err := zkonce.NewPromise[int](other, "/b/promise").Complete(v.T.Context(), 1)
		require.NoError(v.T, err)
		v.Awaits(done, "the promise")
	},
	"Latch.Done": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		busy()
		done := zklatch.New(s, "/b/latch", 1).Done()
		require.NoError(v.T, zklatch.New(other, "/b/latch", 1).CountDown(v.T.Context()))
		v.Awaits(done, "the latch")
	},
	"Cache": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		m := zkmap.New[string, int](other, "/b/map")
		require.NoError(v.T, m.Store(v.T.Context(), "k", 1))
		c, err := zkmap.New[string, int](s, "/b/map").Cached(v.T.Context())
		require.NoError(v.T, err)
		defer c.Close()
		busy()
		require.NoError(v.T, m.Store(v.T.Context(), "k", 2))
		v.Eventually(func() bool { n, _ := c.Load("k"); return n == 2 }, "the copy has the change")
	},
	"Tree": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		tree := zkwatch.NewTree(s, "/b/tree")
		defer tree.Close()
		require.NoError(v.T, tree.Start(v.T.Context()))
		busy()
		v.Put("/b/tree/x", "x")
		v.Eventually(func() bool { _, there := tree.Get("/b/tree/x"); return there }, "the tree has the node")
	},
	"Kept": func(v *proving.Env, s, other *zksync.Session, busy func()) {
		busy()
		k := zkwatch.Keep(s, "/b/kept", []byte("x"))
		v.Eventually(func() bool { return v.Exists("/b/kept") }, "the node is there")
		require.False(v.T, proving.IsClosed(k.Done()))
		require.NoError(v.T, k.Close())
	},
}

// readers is the reading side of a lock.
type readers struct{ *zkrwmutex.RWMutex }

func (r readers) Lock()         { r.RLock() }
func (r readers) TryLock() bool { return r.TryRLock() }
func (r readers) Unlock()       { r.RUnlock() }

func multi(s *zksync.Session) *zksync.Multi {
	return zksync.MultiLock(zksync.NewMutex(s, "/b/multi/1"), zksync.NewMutex(s, "/b/multi/2"))
}

// passes sees that the lock is free.
func passes(v *proving.Env, m locker) {
	got := make(chan struct{})
	go func() { m.Lock(); m.Unlock(); close(got) }()
	v.Awaits(got, "the lock of another session")
}

func locks(v *proving.Env, m, other locker, busy func()) {
	busy()
	m.Lock()
	require.False(v.T, other.TryLock())
	m.Unlock()
	passes(v, other)
}

// waits queues behind a holder that unlocks while the servers are busy.
func waits(v *proving.Env, m, other locker, dir string, busy func()) {
	other.Lock()
	got := make(chan struct{})
	go func() { m.Lock(); close(got) }()
	v.Queued(dir, 2)
	busy()
	other.Unlock()
	v.Awaits(got, "the lock")
	m.Unlock()
	passes(v, other)
}

// attempts may succeed or not, and leaves nothing if not.
func attempts(v *proving.Env, m, other locker, busy func()) {
	busy()
	start := time.Now()
	if m.TryLock() {
		m.Unlock()
	}
	v.Within(start, busyFor, "TryLock")
	passes(v, other)
}

func unlocks(v *proving.Env, m, other locker, busy func()) {
	m.Lock()
	busy()
	m.Unlock()
	passes(v, other)
}

func signals(v *proving.Env, s, other *zksync.Session, busy func(), signal func(*zkcond.Cond)) {
	waits := zkcond.New(zksync.NewMutex(other, "/b/m"), "/b/cond")
	woken := make(chan struct{})
	go func() {
		waits.L.Lock()
		waits.Wait()
		waits.L.Unlock()
		close(woken)
	}()
	v.Queued("/b/cond", 1)
	c := zkcond.New(zksync.NewMutex(s, "/b/m"), "/b/cond")
	c.L.Lock()
	busy()
	signal(c)
	c.L.Unlock()
	v.Awaits(woken, "the waiter")
}

// throttles has the servers refuse all requests for busyFor from the nth request on, as those that throttle do: all but
// those that begin and end a session and keep it alive.
func throttles(v *proving.Env, nth int) (begun func() time.Time) {
	var mu sync.Mutex
	var made int
	var at time.Time
	v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if proving.Counts(q) {
			made++
		}
		if made >= nth && at.IsZero() {
			at = time.Now()
		}
		busy := made >= nth && time.Since(at) < busyFor
		if !busy || !proving.Counts(q) && q.Op != zktest.Sync {
			return zktest.Verdict{}
		}
		return zktest.Verdict{Fate: zktest.Fail, Code: zktest.CodeThrottled}
	})
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}
}

// Servers that have too many requests refuse all for a while, and nobody who calls these has an error to look at. They
// begin at the first request, at the second and so on, until there is none that they could refuse.
func TestCallsWithoutErrorsOutlastServersThatThrottle(t *testing.T) {
	for name, call := range errorless {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for nth, more := 1, true; more && !t.Failed(); nth++ {
				if !proving.Drawn(t, nth) {
					continue
				}
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s, other := v.Session(), v.Session()
					var begun func() time.Time
					require.NotPanics(t, func() {
						call(v, s, other, func() { begun = throttles(v, nth) })
					}, "busy from request %d on", nth)
					if more = !begun().IsZero(); more {
						v.Within(begun(), busyFor+2*time.Second, fmt.Sprintf("the call, busy from request %d on,", nth))
					}
				})
			}
		})
	}
}
