package deadlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A service of many goroutines: each holds one lock at a time for longer than a second. So at every moment both sessions hold and
// wait for locks of each other, and nothing is a deadlock.
func TestCrossingLocksOfManyGoroutinesAreNoDeadlock(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var all sync.WaitGroup
		for n := range 3 {
			s := v.Session(detect)
			for i := range 4 {
				m := zksync.NewMutex(s, fmt.Sprint("/locks/", i)) // shared by three goroutines
				for worker := range 3 {
					all.Go(func() {
						for round := range 5 {
							l, err := m.LockContext(t.Context())
							require.NoError(t, err)
							time.Sleep(time.Duration(700+100*n+50*i+30*worker+10*round) * time.Millisecond)
							require.NoError(t, l.Unlock())
						}
					})
				}
			}
		}
		all.Wait()
	})
}

// The same with nested locks that all take in the same order, and a reader's lock outside.
func TestNestedLocksInOneOrderAreNoDeadlock(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var all sync.WaitGroup
		for n := range 3 {
			s := v.Session(detect)
			for worker := range 3 {
				all.Go(func() {
					for round := range 4 {
						paths := []string{"/locks/a", "/locks/b", "/locks/c"}
						var held []*zksync.Lease
						for _, p := range paths[(n+worker+round)%2:] {
							l, err := zksync.NewMutex(s, p).LockContext(t.Context())
							require.NoError(t, err)
							held = append(held, l)
							time.Sleep(600 * time.Millisecond)
						}
						for _, l := range held {
							require.NoError(t, l.Unlock())
						}
					}
				})
			}
		}
		all.Wait()
	})
}

// Hand over hand, with goroutines that get the lock from each other: the node of /locks/a must not stand for two owners.
func TestAHoldThatAWaitNamesIsNotHandedOver(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		one, two := v.Session(detect), v.Session(detect)
		shared := zksync.NewMutex(one, "/locks/a")
		a, next, b := newOwner(t), newOwner(t), newOwner(t)
		b.locks(lock(two, "/locks/c"))
		a.locks(shared.LockContext)
		next.begins(shared.LockContext)
		v.Quiet()
		a.locks(lock(one, "/locks/b"))
		require.NoError(t, a.leases[0].Unlock())
		require.NoError(t, <-next.acquired)
		require.Zero(t, next.leases[0].Token().Seq)
		require.NotEqual(t, a.leases[0].Token(), next.leases[0].Token())
		a.begins(lock(one, "/locks/c"))
		v.Settled("/locks/c", 2)
		b.begins(lock(two, "/locks/a"))
		v.Settled("/locks/a", 2)
		proving.Pause(t, v, time.Minute)
		a.waits()
		b.waits()
		next.unlocks()
		require.NoError(t, <-b.acquired)
		b.unlocks()
		require.NoError(t, <-a.acquired)
	})
}

// crossed has another session hold /locks/b and wait for /locks/a, which one holds. It returns its owner.
func crossed(t *testing.T, v *proving.Env) *owner {
	two := v.Session(detect)
	b := newOwner(t)
	b.locks(lock(two, "/locks/b"))
	b.begins(lock(two, "/locks/a"))
	v.Settled("/locks/a", 2)
	return b
}

func TestAGoroutineHoldsWhatTheOneThatStartedItHolds(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		one := v.Session(detect)
		l, err := lock(one, "/locks/a")(t.Context())
		require.NoError(t, err)
		b := crossed(t, v)
		start := time.Now()
		w := proving.Call(t.Context(), lock(one, "/locks/b")) // in a goroutine that this one starts
		require.ErrorIs(t, v.Failed(w), zksync.ErrDeadlock)
		v.Took(start, time.Second, "the wait of the goroutine")
		require.NoError(t, l.Unlock())
		require.NoError(t, <-b.acquired)
	})
}

// Nothing says that the one that started it waits for it, and to be started under a lock is usual.
func TestAWorkerThatIsStartedUnderALockMayWaitForIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(detect), "/locks/a")
		m.Lock()
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			m.Lock()
			m.Unlock()
		}()
		time.Sleep(time.Minute)
		m.Unlock()
		require.Nil(t, <-done)
	})
}

func TestACallHoldsTheLeasesOfItsContext(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		one := v.Session(detect)
		a, stranger := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b := crossed(t, v)
		inner := newOwner(t)
		inner.locks(func(context.Context) (*zksync.Lease, error) { return lock(one, "/locks/c")(a.leases[0].Context()) })
		start := time.Now()
		stranger.begins(func(context.Context) (*zksync.Lease, error) { return lock(one, "/locks/b")(inner.leases[0].Context()) })
		stranger.deadlocked()
		v.Took(start, time.Second, "the wait under the lease that was acquired under the lease")
		inner.unlocks()
		a.unlocks()
		require.NoError(t, <-b.acquired)
	})
}

// Without a lease in its context, started by neither of them, a goroutine holds nothing.
func TestAnotherGoroutineOfTheSessionHoldsNothing(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		one := v.Session(detect)
		a, stranger := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b := crossed(t, v)
		stranger.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		proving.Pause(t, v, 5*time.Second)
		stranger.waits()
		b.waits()
		a.unlocks()
		require.NoError(t, <-b.acquired)
		b.unlocks()
		require.NoError(t, <-stranger.acquired)
	})
}

// Two goroutines of one session, on the same two objects: neither wait has a node.
func TestACycleInsideAProcessIsFound(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(detect)
		ma, mb := zksync.NewMutex(s, "/locks/a"), zksync.NewMutex(s, "/locks/b")
		a, b := newOwner(t), newOwner(t)
		a.locks(ma.LockContext)
		b.locks(mb.LockContext)
		start := time.Now()
		a.begins(mb.LockContext)
		v.Quiet()
		proving.Pause(t, v, 100*time.Millisecond)
		b.begins(ma.LockContext)
		require.Equal(t, "zksync: lock /locks/a: deadlock: P holds /locks/b and waits for /locks/a; P holds /locks/a and waits for /locks/b", b.deadlocked())
		v.Took(start, 1100*time.Millisecond, "the newer wait")
		b.unlocks()
		require.NoError(t, <-a.acquired)
	})
}

// One wait is behind a goroutine of the same process, the other one behind another process: only the process of the first sees the
// whole cycle, and its wait fails although it is older.
func TestACycleThroughAWaitInsideAProcessIsFound(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		one, two := v.Session(detect), v.Session(detect)
		ma := zksync.NewMutex(one, "/locks/a")
		a, a2, b := newOwner(t), newOwner(t), newOwner(t)
		b.locks(lock(two, "/locks/b"))
		a.locks(ma.LockContext)
		a2.locks(lock(one, "/locks/c"))
		start := time.Now()
		a2.begins(ma.LockContext) // behind a, in this process
		v.Quiet()
		b.begins(lock(two, "/locks/c"))
		v.Settled("/locks/c", 2)
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		require.Equal(t, "zksync: lock /locks/a: deadlock: P holds /locks/c and waits for /locks/a; "+
			"P holds /locks/a and waits for /locks/b; P holds /locks/b and waits for /locks/c", a2.deadlocked())
		v.Took(start, time.Second, "the wait without a node")
		a2.unlocks()
		require.NoError(t, <-b.acquired)
		b.unlocks()
		require.NoError(t, <-a.acquired)
	})
}

// The entry of an object says what the first of its waiters holds. When that one fails, the others queue again.
func TestAWaiterThatFailsTakesItsEntryAwayFromThoseThatJoinedIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for _, of := range []func(*zksync.Session) func(context.Context) (*zksync.Lease, error){
			func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) { return lock(s, "/locks/b") },
			func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
				return zkrwmutex.New(s, "/locks/b").RLockContext
			},
		} {
			one := v.Session(detect)
			get := of(one)
			a, joined := newOwner(t), newOwner(t)
			a.locks(lock(one, "/locks/a"))
			b := crossed(t, v)
			a.begins(get)
			v.Settled("/locks/b", 2)
			before := v.Children("/locks/b")
			joined.begins(get)
			v.Quiet()
			a.deadlocked()
			v.Settled("/locks/b", 2)
			require.NotEqual(t, before, v.Children("/locks/b"), "not the entry that says what the first one holds")
			all, err := zksync.Contenders(t.Context(), one, "/locks/b")
			require.NoError(t, err)
			require.Equal(t, "none", all[1].Under)
			a.unlocks()
			require.NoError(t, <-b.acquired)
			b.unlocks()
			require.NoError(t, <-joined.acquired)
			joined.unlocks()
		}
	})
}

// Two readers share a node, and the one that waits no longer holds it: another goroutine has unlocked its lease.
func TestALeaseThatEndedDuringTheWaitIsNotHeld(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		one, two := v.Session(detect), v.Session()
		rw := zkrwmutex.New(one, "/locks/a")
		a, other, b, c := newOwner(t), newOwner(t), newOwner(t), newOwner(t)
		a.locks(rw.RLockContext)
		other.locks(rw.RLockContext)
		require.Equal(t, a.leases[0].Node(), other.leases[0].Node())
		a.locks(lock(one, "/locks/z"))
		three := v.Session(detect)
		c.locks(lock(three, "/locks/y"))
		c.begins(lock(three, "/locks/z")) // so that there is a reason to look
		v.Settled("/locks/z", 2)
		b.locks(lock(two, "/locks/b"))
		b.begins(zkrwmutex.New(two, "/locks/a").LockContext)
		v.Settled("/locks/a", 2)
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		require.NoError(t, a.leases[0].Unlock())
		time.Sleep(time.Minute)
		a.waits()
		other.unlocks()
		require.NoError(t, <-b.acquired)
		b.unlocks()
		require.NoError(t, <-a.acquired)
		a.unlocks()
		require.NoError(t, <-c.acquired)
	})
}

func TestASessionKeepsNoLeaseThatHasEnded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(detect)
		a := newOwner(t)
		for _, get := range []func(context.Context) (*zksync.Lease, error){lock(s, "/locks/a"), zkrwmutex.New(s, "/locks/rw").RLockContext, permit(s)} {
			a.locks(get)
		}
		require.Len(t, lease.Live((*session.Session)(s)), 3)
		a.unlocks()
		require.Empty(t, lease.Live((*session.Session)(s)))
		a.locks(lock(s, "/locks/a"))
		v.Server.Expire(s.ID())
		<-a.leases[3].Done()
		require.Empty(t, lease.Live((*session.Session)(s)))
	})
}

// In both clusters the same happens, so their holds have the same tokens.
func TestALeaseOfAnotherClusterInTheContextIsNotHeldHere(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		far := zktest.Run(t)
		a, b, c := newOwner(t), newOwner(t), newOwner(t)
		here, one, two := v.Session(detect), far.Session(t, detect), far.Session(t, detect)
		v.Session()
		a.locks(lock(here, "/locks/a"))
		c.locks(lock(one, "/locks/a"))
		require.Equal(t, a.leases[0].Token(), c.leases[0].Token())
		b.locks(lock(two, "/locks/b"))
		b.begins(lock(two, "/locks/a"))
		v.Quiet()
		a.begins(func(context.Context) (*zksync.Lease, error) { return lock(one, "/locks/b")(a.leases[0].Context()) })
		time.Sleep(time.Minute)
		a.waits()
		b.waits()
		c.unlocks()
		require.NoError(t, <-b.acquired)
		b.unlocks()
		require.NoError(t, <-a.acquired)
		a.unlocks()
	})
}
