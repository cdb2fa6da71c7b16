package deadlock_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

var detect = zksync.WithDeadlockDetection()

// lock is a lock of one of the sessions s.
func lock(s *zksync.Session, path string) func(context.Context) (*zksync.Lease, error) {
	return zksync.NewMutex(s, path).LockContext
}

// owner is a goroutine that locks what it is given, and never gives anything up before the test says so.
type owner struct {
	t        *testing.T
	ctx      context.Context
	giveUp   context.CancelFunc
	do       chan func()
	leases   []*zksync.Lease
	acquired chan error
}

func newOwner(t *testing.T) *owner {
	o := &owner{t: t, do: make(chan func()), acquired: make(chan error, 1)}
	o.ctx, o.giveUp = context.WithCancel(t.Context())
	go func() {
		for f := range o.do {
			f()
		}
	}()
	t.Cleanup(func() { close(o.do) })
	return o
}

// begins has the owner lock something, without waiting for it.
func (o *owner) begins(get func(context.Context) (*zksync.Lease, error)) {
	o.do <- func() {
		l, err := get(o.ctx)
		if err == nil {
			o.leases = append(o.leases, l)
		}
		o.acquired <- err
	}
}

// locks has the owner lock something, and waits for it.
func (o *owner) locks(get func(context.Context) (*zksync.Lease, error)) {
	o.t.Helper()
	o.begins(get)
	require.NoError(o.t, <-o.acquired)
}

// unlocks has the owner give up all.
func (o *owner) unlocks() {
	done := make(chan struct{})
	o.do <- func() {
		for _, l := range o.leases {
			_ = l.Unlock()
		}
		close(done)
	}
	<-done
}

// waits checks that the owner has no answer.
func (o *owner) waits() {
	o.t.Helper()
	require.Empty(o.t, o.acquired)
}

// deadlocked waits until the owner fails, and returns the cycle, without what differs from run to run: real servers take their time.
func (o *owner) deadlocked() string {
	o.t.Helper()
	err := <-o.acquired
	require.ErrorIs(o.t, err, zksync.ErrDeadlock)
	require.NotErrorIs(o.t, err, context.Canceled)
	text := regexp.MustCompile(`\S+ pid \d+`).ReplaceAllString(err.Error(), "P")
	return regexp.MustCompile(` since \d+s`).ReplaceAllString(text, "")
}

func TestOfTwoWaitsForEachOtherTheNewerOneFailsAfterASecond(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		one, two := v.Session(detect), v.Session(detect)
		a, b := newOwner(t), newOwner(t)
		a.locks(lock(one, "/locks/a"))
		b.locks(lock(two, "/locks/b"))
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		proving.Pause(t, v, 300*time.Millisecond)
		start := time.Now()
		b.begins(lock(two, "/locks/a"))
		text := b.deadlocked()
		v.Took(start, time.Second, "the wait that closed the cycle")
		require.Equal(t, "zksync: lock /locks/a: deadlock: P holds /locks/b and waits for /locks/a; P holds /locks/a and waits for /locks/b", text)
		v.Queued("/locks/a", 1)
		a.waits()
		start = time.Now()
		b.unlocks()
		require.NoError(t, <-a.acquired)
		v.AtOnce(start, "the other wait")
		a.unlocks()
	})
}

// ring has three owners wait for each other, and returns them, and when each wait began: the last one is the newest.
func ring(t *testing.T, v *proving.Env, s ...*zksync.Session) (all [3]*owner, began [3]time.Time) {
	paths := []string{"/locks/a", "/locks/b", "/locks/c"}
	for i := range all {
		all[i] = newOwner(t)
		all[i].locks(lock(s[i], paths[i]))
	}
	for i := range all {
		next := paths[(i+1)%3]
		began[i] = time.Now()
		all[i].begins(lock(s[i], next))
		v.Settled(next, 2)
	}
	return all, began
}

func TestTheNewestWaitOfThreeFails(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		all, began := ring(t, v, v.Session(detect), v.Session(detect), v.Session(detect))
		require.Equal(t, "zksync: lock /locks/a: deadlock: P holds /locks/c and waits for /locks/a; "+
			"P holds /locks/a and waits for /locks/b; P holds /locks/b and waits for /locks/c", all[2].deadlocked())
		v.Took(began[2], time.Second, "the newest wait")
		all[2].unlocks()
		require.NoError(t, <-all[1].acquired)
		all[1].unlocks()
		require.NoError(t, <-all[0].acquired)
	})
}

// The newest wait does not look, so the next one fails.
func TestACycleThroughAProcessWithoutTheOptionIsFound(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		all, began := ring(t, v, v.Session(), v.Session(detect), v.Session())
		require.Contains(t, all[1].deadlocked(), "zksync: lock /locks/c: deadlock: ")
		v.Took(began[1], time.Second, "the only wait that looks")
		all[1].unlocks()
		require.NoError(t, <-all[0].acquired)
		all[0].unlocks()
		require.NoError(t, <-all[2].acquired)
	})
}

// A newer wait says what it holds and does not look, as that of the command: it keeps the older one waiting for two looks.
func TestAWaitThatDoesNotLookKeepsAnOlderOneWaitingForTwoLooks(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		one := v.Session(detect)
		a := newOwner(t)
		a.locks(lock(one, "/locks/a"))
		held := v.Lock(zksync.NewMutex(v.Session(), "/locks/b"))
		inner := v.Session(session.ForSession(func(s *session.Settings) { s.Under = held.Token().String() }))
		start := time.Now()
		a.begins(lock(one, "/locks/b"))
		v.Settled("/locks/b", 2)
		w := proving.Begin(t.Context(), zksync.NewMutex(inner, "/locks/a"))
		a.deadlocked()
		v.Took(start, (1+2+4)*time.Second, "the third look")
		a.unlocks()
		require.NoError(t, v.Granted(w).Unlock())
		require.NoError(t, held.Unlock())
	})
}

func TestAReaderBehindAWriterMayCloseACycle(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := []*zksync.Session{v.Session(detect), v.Session(detect), v.Session(detect)}
		reader, writer, late := newOwner(t), newOwner(t), newOwner(t)
		reader.locks(zkrwmutex.New(s[0], "/locks/rw").RLockContext)
		late.locks(lock(s[2], "/locks/c"))
		writer.begins(zkrwmutex.New(s[1], "/locks/rw").LockContext)
		v.Settled("/locks/rw", 2)
		reader.begins(lock(s[0], "/locks/c"))
		v.Settled("/locks/c", 2)
		start := time.Now()
		late.begins(zkrwmutex.New(s[2], "/locks/rw").RLockContext)
		require.Equal(t, "zkrwmutex: read-lock /locks/rw: deadlock: P holds /locks/c and waits for /locks/rw; "+
			"P is ahead and waits for /locks/rw; P holds /locks/rw and waits for /locks/c", late.deadlocked())
		v.Took(start, time.Second, "the late reader")
		late.unlocks()
		require.NoError(t, <-reader.acquired)
		reader.unlocks()
		require.NoError(t, <-writer.acquired)
	})
}

func TestAWriterThatWaitsForAReaderThatWaitsForItFails(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		one, two := v.Session(detect), v.Session(detect)
		a, b := newOwner(t), newOwner(t)
		a.locks(zkrwmutex.New(one, "/locks/a").RLockContext)
		b.locks(zkrwmutex.New(two, "/locks/b").RLockContext)
		a.begins(zkrwmutex.New(one, "/locks/b").LockContext)
		v.Settled("/locks/b", 2)
		start := time.Now()
		b.begins(zkrwmutex.New(two, "/locks/a").LockContext)
		require.Contains(t, b.deadlocked(), "zkrwmutex: lock /locks/a: deadlock: ")
		v.Took(start, time.Second, "the newer writer")
		b.unlocks()
		require.NoError(t, <-a.acquired)
	})
}

func permit(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
	sem := zksemaphore.NewWeighted(s, "/locks/s", 2)
	return func(ctx context.Context) (*zksync.Lease, error) { return sem.AcquireLease(ctx, 1) }
}

// Two permits: the third owner waits for both holders, and only one of them waits for it.
func TestAPermitThatAnotherHolderReleasesIsNoDeadlock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := []*zksync.Session{v.Session(detect), v.Session(detect), v.Session(detect)}
		var all [3]*owner
		for i := range all {
			all[i] = newOwner(t)
		}
		all[0].locks(permit(s[0]))
		all[1].locks(permit(s[1]))
		all[2].locks(lock(s[2], "/locks/c"))
		all[0].begins(lock(s[0], "/locks/c"))
		v.Settled("/locks/c", 2)
		all[2].begins(permit(s[2]))
		v.Settled("/locks/s/queue", 3)
		proving.Pause(t, v, 5*time.Second)
		all[0].waits()
		all[2].waits()
		start := time.Now()
		all[1].begins(lock(s[1], "/locks/c")) // now both wait
		require.Contains(t, all[1].deadlocked(), "P holds /locks/s and waits for /locks/c; P holds /locks/c and waits for /locks/s")
		v.Took(start, time.Second, "the wait that closed the cycle")
		all[1].unlocks()
		require.NoError(t, <-all[2].acquired)
		all[2].unlocks()
		require.NoError(t, <-all[0].acquired)
	})
}
