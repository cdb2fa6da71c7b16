package proving

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// Attempt is one call in a goroutine of its own.
type Attempt struct {
	Done  chan struct{} // closed when the call has returned; the others are what it returned, and when
	Lease *zksync.Lease
	Err   error
	At    time.Time
}

// Call starts any form that waits for a lease.
func Call(ctx context.Context, get func(context.Context) (*zksync.Lease, error)) *Attempt {
	a := &Attempt{Done: make(chan struct{})}
	go func() {
		defer close(a.Done)
		a.Lease, a.Err = get(ctx)
		a.At = time.Now()
	}()
	return a
}

// Begin starts LockContext.
func Begin(ctx context.Context, m *zksync.Mutex) *Attempt { return Call(ctx, m.LockContext) }

// Waits starts a call that returns an error only.
func Waits(ctx context.Context, f func(context.Context) error) *Attempt {
	return Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return nil, f(ctx) })
}

// Pending reports whether the call has not returned yet.
func (a *Attempt) Pending() bool {
	select {
	case <-a.Done:
		return false
	default:
		return true
	}
}

// Granted waits for the lease.
func (v *Env) Granted(a *Attempt) *zksync.Lease {
	v.T.Helper()
	v.Awaits(a.Done, "the call to return")
	require.NoError(v.T, a.Err)
	return a.Lease
}

// Passes waits for a call that has to succeed.
func (v *Env) Passes(a *Attempt) {
	v.T.Helper()
	v.Awaits(a.Done, "the wait to end")
	require.NoError(v.T, a.Err)
}

// Failed waits for the error.
func (v *Env) Failed(a *Attempt) error {
	v.T.Helper()
	v.Awaits(a.Done, "the call to return")
	require.Error(v.T, a.Err)
	require.Nil(v.T, a.Lease)
	return a.Err
}

// Awaits waits for something that is expected to happen.
func (v *Env) Awaits(done <-chan struct{}, what string) {
	v.T.Helper()
	limit := time.NewTimer(v.Patience())
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		require.Fail(v.T, "waited "+v.Patience().String()+" for "+what)
	}
}

// Get is a form that waits for a lease and must not take long.
func (v *Env) Get(f func(context.Context) (*zksync.Lease, error)) *zksync.Lease {
	v.T.Helper()
	return v.Granted(Call(context.Background(), f))
}

// Lock locks now, which must not take long.
func (v *Env) Lock(m *zksync.Mutex) *zksync.Lease {
	v.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
	defer cancel()
	l, err := m.LockContext(ctx)
	require.NoError(v.T, err)
	return l
}

// Unlocks unlocks what a call has just granted.
func (v *Env) Unlocks(l *zksync.Lease, err error) {
	v.T.Helper()
	require.NoError(v.T, err)
	require.NoError(v.T, l.Unlock())
}

// Line makes the mutexes wait for the lock one behind the other.
func (v *Env) Line(ms ...*zksync.Mutex) []*Attempt {
	v.T.Helper()
	as := make([]*Attempt, len(ms))
	for i, m := range ms {
		before := len(v.Children(LockPath))
		as[i] = Begin(context.Background(), m)
		v.Queued(LockPath, before+1)
	}
	v.Quiet()
	return as
}

// Section is a critical section that finds out if it is not: Count is a plain int that only
// the lock protects.
type Section struct {
	inside   atomic.Int32
	overlaps atomic.Int32
	Count    int
}

// Pass goes in, counts, and goes out.
func (s *Section) Pass() {
	if s.inside.Add(1) != 1 {
		s.overlaps.Add(1)
	}
	n := s.Count
	runtime.Gosched()
	s.Count = n + 1
	s.inside.Add(-1)
}

// Check is called when everybody has left.
func (s *Section) Check(t *testing.T, want int) {
	t.Helper()
	require.Zero(t, s.overlaps.Load(), "two were inside at once")
	require.Equal(t, want, s.Count, "updates were lost")
}

// ErrTest is what functions of a test fail with.
var ErrTest = errors.New("an error of the test's own")

// Never is a function that must not be called.
func (v *Env) Never(context.Context) (string, error) {
	v.T.Error("it was called")
	return "", ErrTest
}

// IsClosed reports whether a channel is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
