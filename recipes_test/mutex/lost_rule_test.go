package mutex_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// mirrorSide is one side of a lock in the form without leases, and in the other form if there is one.
type mirrorSide struct {
	lock, unlock func()
	try          func() bool
	get, tryGet  func(context.Context) (*zksync.Lease, error)
}

// sidesOf are the sides of a lock. Readers conflict with writers, and writers with all.
func sidesOf(name string, s *zksync.Session) map[string]mirrorSide {
	switch name {
	case "Mutex":
		m := zksync.NewMutex(s, proving.LockPath)
		return map[string]mirrorSide{"write": {m.Lock, m.Unlock, m.TryLock, m.LockContext, m.TryLockContext}}
	case "MultiLock":
		m := zksync.MultiLock(zksync.NewMutex(s, proving.LockPath), zksync.NewMutex(s, "/locks/b"))
		return map[string]mirrorSide{"write": {m.Lock, m.Unlock, m.TryLock, nil, nil}}
	case "RWMutex":
		m := zkrwmutex.New(s, proving.LockPath)
		return map[string]mirrorSide{
			"write": {m.Lock, m.Unlock, m.TryLock, m.LockContext, m.TryLockContext},
			"read":  {m.RLock, m.RUnlock, m.TryRLock, m.RLockContext, m.TryRLockContext},
		}
	case "reentrant.Mutex":
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		return map[string]mirrorSide{"write": {m.Lock, m.Unlock, m.TryLock, m.LockContext, m.TryLockContext}}
	case "reentrant.RWMutex":
		m := reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath))
		return map[string]mirrorSide{
			"write": {m.Lock, m.Unlock, m.TryLock, m.LockContext, m.TryLockContext},
			"read":  {m.RLock, m.RUnlock, m.TryRLock, m.RLockContext, m.TryRLockContext},
		}
	}
	w := zksemaphore.NewWeighted(s, proving.LockPath, 1)
	return map[string]mirrorSide{"write": {
		lock:   func() { _ = w.Acquire(context.Background(), 1) },
		unlock: func() { w.Release(1) },
		try:    func() bool { return w.TryAcquire(1) },
	}}
}

var mirrorLocks = []string{"Mutex", "MultiLock", "RWMutex", "reentrant.Mutex", "reentrant.RWMutex", "Weighted"}

// One rule: at once while the connection is known to be lost, after a third of the session timeout
// while it is not.
func TestATryWithoutAConnectionIsTheSameForEveryLock(t *testing.T) {
	for _, name := range mirrorLocks {
		for side := range sidesOf(name, nil) {
			t.Run(name+"/"+side, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s := v.Session(zksync.WithTimeout(9 * time.Second))
					x := sidesOf(name, s)[side]
					x.lock() // no step of the first lock of a path is missing
					x.unlock()

					heal := v.CutOff(s)
					v.Quiet()
					start := time.Now()
					require.False(t, x.try())
					v.Took(start, 0, "a try while the session is suspended")
					heal()
					time.Sleep(time.Second)
					require.True(t, x.try())
					x.unlock()
					v.Quiet()

					resume := v.Server.Partition(s.ID())
					start = time.Now()
					require.False(t, x.try())
					v.Took(start, 3*time.Second, "a try while nobody answers")
					resume()
					time.Sleep(time.Minute)
					require.True(t, x.try())
					x.unlock()
					v.Queued(proving.LockPath, 0)
				})
			})
		}
	}
}

// One rule: critical sections of the form without leases run on when their hold is lost, and keep those of
// this process out that the hold kept out, in either form, until they end. Permits bound what is
// shared by all, and protect nothing of this process: see the documentation of Weighted.
func TestALostHoldKeepsThisProcessOutUntilItsUnlockInEveryLock(t *testing.T) {
	for _, name := range mirrorLocks[:5] {
		for held := range sidesOf(name, nil) {
			for asked := range sidesOf(name, nil) {
				t.Run(name+"/"+held+" held, "+asked+" asked for", func(t *testing.T) {
					proving.InProcess(t, func(t *testing.T, v *proving.Env) { keptOut(t, v, name, held, asked) })
				})
			}
		}
	}
}

func keptOut(t *testing.T, v *proving.Env, name, held, asked string) {
	s := v.Session()
	sides := sidesOf(name, s)
	mine, other := sides[held], sides[asked]
	conflict := held == "write" || asked == "write"
	mine.lock()
	waits := make(chan struct{}) // since before the loss
	go func() {
		defer close(waits)
		other.lock()
		other.unlock()
	}()
	v.Quiet()
	v.Server.Expire(s.ID())
	time.Sleep(time.Minute)
	synctest.Wait()
	require.Equal(t, conflict, stillOpen(waits))

	tried := make(chan bool, 1)
	elsewhere := func(f func() bool) bool { // owners are goroutines, mostly
		go func() { tried <- f() }()
		return <-tried
	}
	require.Equal(t, !conflict, elsewhere(func() bool {
		ok := other.try()
		if ok {
			other.unlock()
		}
		return ok
	}), "TryLock")
	if other.get != nil {
		keptOutLeases(t, v, other, conflict, elsewhere)
	}
	requests := v.Requests()
	time.Sleep(time.Second)
	require.Less(t, v.Requests()-requests, 20, "nobody tries again and again")

	mine.unlock()
	synctest.Wait()
	require.False(t, stillOpen(waits), "its Unlock lets the others in")
	require.True(t, mine.try())
	mine.unlock()
	v.Quiet()
	v.Queued(proving.LockPath, 0)
}

// keptOutLeases is the same for the form with leases.
func keptOutLeases(t *testing.T, v *proving.Env, other mirrorSide, conflict bool, elsewhere func(func() bool) bool) {
	require.Equal(t, !conflict, elsewhere(func() bool {
		l, err := other.tryGet(context.Background())
		if err != nil {
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			return false
		}
		return l.Unlock() == nil
	}), "TryLockContext")
	require.Equal(t, !conflict, elsewhere(func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		l, err := other.get(ctx)
		if err == nil {
			return l.Unlock() == nil
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.Within(start, time.Second+100*time.Millisecond, "LockContext")
		return false
	}), "LockContext")
}

func stillOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

// A lost lease keeps nobody out: whoever has one looks at it.
func TestALostLeaseKeepsNobodyOutInAnyLock(t *testing.T) {
	for _, name := range mirrorLocks[:5] {
		for held, x := range sidesOf(name, nil) {
			for asked := range sidesOf(name, nil) {
				if x.get == nil {
					continue
				}
				t.Run(name+"/"+held+" held, "+asked+" asked for", func(t *testing.T) {
					proving.InProcess(t, func(t *testing.T, v *proving.Env) {
						s := v.Session()
						sides := sidesOf(name, s)
						l := v.Get(sides[held].get)
						v.Server.Expire(s.ID())
						time.Sleep(time.Minute)
						done := make(chan struct{})
						go func() {
							defer close(done)
							sides[asked].lock()
							sides[asked].unlock()
						}()
						synctest.Wait()
						require.False(t, stillOpen(done))
						require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
					})
				})
			}
		}
	}
}
