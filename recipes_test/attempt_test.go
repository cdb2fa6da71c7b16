package recipes_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// attempt is one call in a goroutine of its own.
type attempt struct {
	done  chan struct{}
	lease *zksync.Lease
	err   error
	at    time.Time // when it returned
}

// begin starts LockContext.
func begin(ctx context.Context, m *zksync.Mutex) *attempt {
	a := &attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.lease, a.err = m.LockContext(ctx)
		a.at = time.Now()
	}()
	return a
}

func (a *attempt) pending() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// granted waits for the lease.
func (v *env) granted(a *attempt) *zksync.Lease {
	v.t.Helper()
	v.awaits(a.done, "the call to return")
	require.NoError(v.t, a.err)
	return a.lease
}

// failed waits for the error.
func (v *env) failed(a *attempt) error {
	v.t.Helper()
	v.awaits(a.done, "the call to return")
	require.Error(v.t, a.err)
	require.Nil(v.t, a.lease)
	return a.err
}

// awaits waits for something that is expected to happen.
func (v *env) awaits(done <-chan struct{}, what string) {
	v.t.Helper()
	limit := time.NewTimer(v.patience())
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		require.Fail(v.t, "waited "+v.patience().String()+" for "+what)
	}
}

// lock locks now, which must not take long.
func (v *env) lock(m *zksync.Mutex) *zksync.Lease {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), v.patience())
	defer cancel()
	l, err := m.LockContext(ctx)
	require.NoError(v.t, err)
	return l
}

// line makes the mutexes wait for the lock one behind the other.
func (v *env) line(ms ...*zksync.Mutex) []*attempt {
	v.t.Helper()
	as := make([]*attempt, len(ms))
	for i, m := range ms {
		before := len(v.children(lockPath))
		as[i] = begin(context.Background(), m)
		v.queued(lockPath, before+1)
	}
	v.quiet()
	return as
}

// section is a critical section that finds out if it is not: count is a plain int that only
// the lock protects.
type section struct {
	inside   atomic.Int32
	overlaps atomic.Int32
	count    int
}

func (s *section) pass() {
	if s.inside.Add(1) != 1 {
		s.overlaps.Add(1)
	}
	n := s.count
	runtime.Gosched()
	s.count = n + 1
	s.inside.Add(-1)
}

// check is called when everybody has left.
func (s *section) check(t *testing.T, want int) {
	t.Helper()
	require.Zero(t, s.overlaps.Load(), "two were inside at once")
	require.Equal(t, want, s.count, "updates were lost")
}
