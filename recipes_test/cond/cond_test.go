package cond_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

// side is one session's view of a lock and its condition.
type side struct {
	s *zksync.Session
	m *zksync.Mutex
	c *zkcond.Cond
}

func newSide(v *proving.Env, opts ...zksync.SessionOption) *side {
	s := v.Session(opts...)
	m := zksync.NewMutex(s, proving.LockPath)
	return &side{s, m, zkcond.New(m, proving.CondPath)}
}

func sides(v *proving.Env, n int) []*side {
	all := make([]*side, n)
	for i := range all {
		all[i] = newSide(v)
	}
	return all
}

// waits has somebody lock and wait, and returns when he does. then runs under the lock afterwards.
func waits(v *proving.Env, w *side, then func()) (done <-chan struct{}) {
	v.T.Helper()
	before := len(v.Children(proving.CondPath))
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.m.Lock()
		w.c.Wait()
		then()
		w.m.Unlock()
	}()
	v.Queued(proving.CondPath, before+1)
	v.Settled(proving.LockPath, 0)
	return over
}

// signals locks, signals, and unlocks.
func (w *side) signals() {
	w.m.Lock()
	w.c.Signal()
	w.m.Unlock()
}

func (w *side) broadcasts() {
	w.m.Lock()
	w.c.Broadcast()
	w.m.Unlock()
}

// waitsContext is waits in the form with leases.
func waitsContext(v *proving.Env, ctx context.Context, w *side) *proving.Attempt {
	v.T.Helper()
	before := len(v.Children(proving.CondPath))
	l := v.Lock(w.m)
	a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) })
	v.Queued(proving.CondPath, before+1)
	v.Settled(proving.LockPath, 0)
	return a
}

func nothing() {}

func TestAcceptance037WaitReturnsAfterASignalByAnotherGoroutine(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := newSide(v)
		held := false
		done := waits(v, w, func() { held = w.m.Lease() != nil && w.m.Lease().Valid() })
		w.signals()
		v.Awaits(done, "Wait")
		require.True(t, held, "it returns with the lock")
		v.Queued(proving.CondPath, 0)
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance038WaitReturnsAfterASignalByAnotherSession(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w, other := newSide(v), newSide(v)
		a := waitsContext(v, context.Background(), w)
		old := v.Lock(other.m)
		require.NoError(t, other.c.SignalContext(context.Background(), old))
		v.Quiet()
		require.True(t, a.Pending(), "the lock is still held")
		require.NoError(t, old.Unlock())
		l := v.Granted(a)
		require.True(t, l.Valid())
		require.Positive(t, l.Token().Compare(old.Token()), "a new lease")
		require.NoError(t, l.Unlock())
		v.Queued(proving.CondPath, 0)
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance039WaitWithADeadlineHoldsTheLockAgain(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := newSide(v)
		var l, again *zksync.Lease
		v.Eventually(func() bool {
			l = v.Lock(w.m)
			ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
			defer cancel()
			start := time.Now()
			var err error
			again, err = w.c.WaitContext(ctx, l)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			v.Within(start, 350*time.Millisecond, "WaitContext")
			require.GreaterOrEqual(t, time.Since(start), 250*time.Millisecond)
			if again == nil && !v.Virtual { // a real server may take longer than the call waits for it
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
				return false
			}
			require.NotNil(t, again, err)
			return true
		}, "it never holds the lock again")
		require.True(t, again.Valid())
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		require.Positive(t, again.Token().Compare(l.Token()))
		require.NoError(t, again.Unlock())
		v.Queued(proving.CondPath, 0)
		v.Queued(proving.LockPath, 0)
	})
}

// The deadline bounds the whole call: who finds the lock taken then returns without it.
func TestAcceptance113ATimedWaitEndsInTimeAlthoughSomebodyHoldsTheLock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w, other := newSide(v), newSide(v)
		l := v.Lock(w.m)
		ctx, cancel := context.WithTimeout(context.Background(), v.Ample(250*time.Millisecond))
		defer cancel()
		a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) })
		v.Queued(proving.CondPath, 1)
		held := v.Lock(other.m)
		v.Awaits(a.Done, "WaitContext")
		require.ErrorIs(t, a.Err, context.DeadlineExceeded)
		require.ErrorIs(t, a.Err, zksync.ErrNotAcquired)
		require.Nil(t, a.Lease)
		if v.Virtual {
			end, _ := ctx.Deadline()
			require.LessOrEqual(t, a.At.Sub(end), 100*time.Millisecond)
		}
		require.NoError(t, held.Unlock())
		v.Queued(proving.CondPath, 0)
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance040WithoutTheLockThereIsNoWaiting(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := newSide(v)
		require.Panics(t, w.c.Wait)
		l := v.Lock(w.m)
		require.NoError(t, l.Unlock())
		ctx := context.Background()
		_, err := w.c.WaitContext(ctx, l)
		require.ErrorIs(t, err, zksync.ErrReleased)
		require.ErrorIs(t, w.c.SignalContext(ctx, l), zksync.ErrReleased)
		require.ErrorIs(t, w.c.BroadcastContext(ctx, nil), zksync.ErrMisuse)
		_, err = w.c.WaitContext(ctx, nil)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		foreign := v.Get(zksync.NewMutex(w.s, "/locks/b").LockContext)
		_, err = w.c.WaitContext(ctx, foreign)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorIs(t, w.c.SignalContext(ctx, foreign), zksync.ErrMisuse)
		require.True(t, foreign.Valid())
		require.NoError(t, foreign.Unlock())
		require.Empty(t, v.Children(proving.CondPath))
	})
}

func TestMisuseOfAConditionIsReportedByTheFirstCall(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath)
		for _, c := range []*zkcond.Cond{
			zkcond.New(m, "a"), zkcond.New(m, proving.LockPath), zkcond.New(m, proving.LockPath+"/cond"),
			zkcond.New((*zksync.Mutex)(nil), proving.CondPath), zkcond.New(nil, proving.CondPath),
			zkcond.New(zksync.NewMutex(nil, proving.LockPath), proving.CondPath),
		} {
			_, err := c.WaitContext(context.Background(), nil)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.Panics(t, c.Signal)
		}
	})
}
