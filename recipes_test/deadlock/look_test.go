package deadlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// calm is a session that has nothing to say for a minute.
func calm(v *proving.Env, opts ...zksync.SessionOption) *zksync.Session {
	return v.Session(append(opts, zksync.WithTimeout(10*time.Minute))...)
}

// looks are how many requests the option adds to each of these times, which follow each other. begin begins the waits, and end ends
// them.
func looks(t *testing.T, times []time.Duration, scenario func(t *testing.T, v *proving.Env, one *zksync.Session) (end func())) (added []int) {
	for _, opts := range [][]zksync.SessionOption{nil, {detect}} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			end := scenario(t, v, calm(v, opts...))
			for i, d := range times {
				v.Quiet()
				before := v.Requests()
				time.Sleep(d)
				v.Quiet()
				if opts == nil {
					added = append(added, -v.Requests()+before)
				} else {
					added[i] += v.Requests() - before
				}
			}
			end()
		})
	}
	return added
}

func TestAWaiterThatHoldsNothingLooksAtNothing(t *testing.T) {
	require.Equal(t, []int{0}, looks(t, []time.Duration{time.Hour}, func(t *testing.T, v *proving.Env, one *zksync.Session) func() {
		a, b := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(one, "/locks/b"))
		a.unlocks()
		a.begins(lock(one, "/locks/b"))
		return func() {
			b.unlocks()
			require.NoError(t, <-a.acquired)
		}
	}))
}

func TestALookReadsWhatTheCallerHoldsIfNoOtherWaitsForThat(t *testing.T) {
	times := []time.Duration{time.Second - 1, 1, 2*time.Second - 1, 1, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
	require.Equal(t, []int{0, 2, 0, 2, 2, 2, 2, 2, 2}, looks(t, times, func(t *testing.T, v *proving.Env, one *zksync.Session) func() {
		a, b := newOwner(t), newOwner(t)
		b.locks(lock(calm(v), "/locks/b"))
		a.locks(lock(one, "/locks/a"))
		a.begins(lock(one, "/locks/b"))
		return func() {
			b.unlocks()
			require.NoError(t, <-a.acquired)
		}
	}), "the names, and one node")
}

// A waiter for what the caller holds that holds nothing itself is no reason to look further.
func TestALookStopsWhereNoWaiterHoldsAnything(t *testing.T) {
	require.Equal(t, []int{0, 3}, looks(t, []time.Duration{time.Second - 1, 1}, func(t *testing.T, v *proving.Env, one *zksync.Session) func() {
		two := calm(v, detect)
		a, b, c := newOwner(t), newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(two, "/locks/b"))
		c.begins(lock(two, "/locks/a"))
		v.Settled("/locks/a", 2)
		a.begins(lock(one, "/locks/b"))
		return func() {
			b.unlocks()
			require.NoError(t, <-a.acquired)
			a.unlocks()
			require.NoError(t, <-c.acquired)
		}
	}))
}

func TestALookThatFindsACycleReadsItTwice(t *testing.T) {
	// The queue of what it holds: the names, and 2 nodes. What it waits for: the names, and 3 nodes. The names of the directory. The names of
	// both queues again. Then its own entry is removed.
	want := []int{0, 3 + 4 + 1 + 2 + 1}
	require.Equal(t, want, looks(t, []time.Duration{time.Second - 1, 1}, func(t *testing.T, v *proving.Env, one *zksync.Session) func() {
		two := calm(v)
		a, b, c := newOwner(t), newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(two, "/locks/b"))
		c.begins(lock(calm(v), "/locks/b"))
		v.Settled("/locks/b", 2)
		b.begins(lock(two, "/locks/a"))
		v.Settled("/locks/a", 2)
		a.begins(lock(one, "/locks/b"))
		return func() {
			a.giveUp() // nothing, if it has failed
			<-a.acquired
			a.unlocks()
			require.NoError(t, <-b.acquired)
			b.unlocks()
			require.NoError(t, <-c.acquired)
		}
	}))
}

// The first read shows a cycle, and the second does not: the other waiter has given up in between.
func TestACycleThatEndsBetweenTheTwoReadsIsNone(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		one, two := calm(v, detect), calm(v)
		a, b := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(two, "/locks/b"))
		ctx, cancel := context.WithCancel(t.Context())
		b.begins(func(context.Context) (*zksync.Lease, error) { return lock(two, "/locks/a")(ctx) })
		v.Settled("/locks/a", 2)
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		directory := v.Server.Intercept(zktest.On(zktest.GetChildren, "/locks").Of(one.ID()).Times(1).Hold()) // after both queues
		time.Sleep(time.Second)
		v.Quiet()
		require.Equal(t, 1, directory.Held())
		cancel()
		require.ErrorIs(t, <-b.acquired, context.Canceled)
		listed := v.Server.RequestsOf(one.ID(), zktest.GetChildren)
		directory.Release()
		v.Quiet()
		require.Equal(t, listed+2, v.Server.RequestsOf(one.ID(), zktest.GetChildren), "the second read of both queues")
		proving.Pause(t, v, time.Minute)
		a.waits()
		b.unlocks()
		require.NoError(t, <-a.acquired)
		a.unlocks()
	})
}

func TestALookThatLosesItsConnectionLooksAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		one, two := calm(v, detect), calm(v)
		a, b := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(two, "/locks/b"))
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		b.begins(lock(two, "/locks/a"))
		v.Settled("/locks/a", 2)
		v.Server.Delay(one.ID(), 100*time.Millisecond, 0)
		time.Sleep(1150 * time.Millisecond)
		allow := v.Server.Refuse()
		v.Server.Disconnect(one.ID())
		time.Sleep(time.Minute)
		a.waits()
		allow()
		start := time.Now()
		a.deadlocked()
		v.Within(start, 2*time.Minute, "after the connection is back")
		a.unlocks()
		require.NoError(t, <-b.acquired)
	})
}

func TestCloseEndsALook(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		one, err := v.Connect(t.Context(), detect, zksync.WithTimeout(10*time.Minute))
		require.NoError(t, err)
		two := calm(v)
		a, b := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(two, "/locks/b"))
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		b.begins(lock(two, "/locks/a"))
		v.Settled("/locks/a", 2)
		directory := v.Server.Intercept(zktest.On(zktest.GetChildren, "/locks").Of(one.ID()).Times(1).Hold())
		time.Sleep(time.Second)
		v.Quiet()
		require.Equal(t, 1, directory.Held())
		closed := make(chan error, 1)
		start := time.Now()
		go func() { closed <- one.Close() }()
		require.ErrorIs(t, <-a.acquired, zksync.ErrClosed)
		v.AtOnce(start, "the wait")
		directory.Release()
		require.NoError(t, <-closed)
		require.NoError(t, <-b.acquired)
	})
}

// What may not be read is no part of a cycle.
func TestAnUnreadableQueueIsNoReasonToFail(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		one, two := calm(v, detect), calm(v)
		a, b := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(two, "/locks/b"))
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		b.begins(lock(two, "/locks/a"))
		v.Settled("/locks/a", 2)
		v.Server.SetACL("/locks/b", zk.DigestACL(zk.PermAll, "other", "x")...)
		time.Sleep(time.Minute)
		a.waits()
		v.Server.SetACL("/locks/b", zk.WorldACL(zk.PermAll)...)
		v.Put("/locks/secret", "") // keeps nothing else from being found
		v.Server.SetACL("/locks/secret", zk.DigestACL(zk.PermAll, "other", "x")...)
		a.deadlocked()
		a.unlocks()
		require.NoError(t, <-b.acquired)
	})
}

// Two directories: without a root no look connects them.
func TestRootsAreLookedAtToo(t *testing.T) {
	for _, c := range []struct {
		root  string
		found bool
	}{{"/far", true}, {"/", true}, {"/elsewhere", false}} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := []*zksync.Session{calm(v, zksync.WithDeadlockDetection(c.root)), calm(v), calm(v)}
			paths := []string{"/near/a", "/far/away/b", "/near/c"}
			var all [3]*owner
			for i := range all {
				all[i] = newOwner(t)
				all[i].locks(lock(s[i], paths[i]))
			}
			// 0 waits for c, which 2 holds. 2 waits for b, which 1 holds. 1 waits for a.
			for i, next := range []string{paths[2], paths[0], paths[1]} {
				all[i].begins(lock(s[i], next))
				v.Settled(next, 2)
			}
			time.Sleep(time.Minute)
			require.Equal(t, c.found, len(all[0].acquired) == 1, c.root)
			if c.found {
				all[0].deadlocked()
			} else {
				all[0].giveUp()
				require.ErrorIs(t, <-all[0].acquired, context.Canceled)
			}
			all[0].unlocks()
			require.NoError(t, <-all[1].acquired)
			all[1].unlocks()
			require.NoError(t, <-all[2].acquired)
			all[2].unlocks()
		})
	}
}

func TestALookAtTooManyLocksSeesItsOwnOnly(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for i := range 1200 {
			v.Put(fmt.Sprint("/locks/other-", i), "")
		}
		var log strings.Builder
		one := calm(v, detect, zksync.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		two := calm(v)
		a, b := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(two, "/locks/b"))
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		time.Sleep(4 * time.Second)
		require.Empty(t, log.String())
		b.begins(lock(two, "/locks/a"))
		v.Settled("/locks/a", 2)
		a.deadlocked()
		require.Equal(t, 1, strings.Count(log.String(), "too many locks to look for deadlocks"))
		a.unlocks()
		require.NoError(t, <-b.acquired)
	})
}

// Another goroutine of the session holds a lock with a queue that is too long to read. That cuts the reads of the others off.
func TestAQueueThatIsTooLongHidesNoOther(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		one, two := calm(v, detect), calm(v)
		a, b, other := newOwner(t), newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		other.locks(lock(one, "/locks/c"))
		b.locks(lock(two, "/locks/b"))
		for i := range 1100 {
			v.Put(fmt.Sprintf("/locks/c/_c_%08x-0000-4000-8000-000000000000-lock-%010d", i, 1000+i), "")
		}
		b.begins(lock(two, "/locks/a"))
		v.Settled("/locks/a", 2)
		v.Server.Delay(one.ID(), 10*time.Millisecond, 10*time.Millisecond)
		a.begins(lock(one, "/locks/b"))
		time.Sleep(2 * time.Second)
		require.Len(t, a.acquired, 1)
		a.deadlocked()
		a.unlocks()
		require.NoError(t, <-b.acquired)
	})
}

func TestARootMustBeAPath(t *testing.T) {
	_, err := zksync.Connect(t.Context(), "zk1", zksync.WithDeadlockDetection("locks"))
	require.ErrorIs(t, err, zksync.ErrMisuse)
	require.ErrorContains(t, err, "locks")
}
