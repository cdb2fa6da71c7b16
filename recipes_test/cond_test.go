package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

const condPath = "/conds/a"

// side is one session's view of a lock and its condition.
type side struct {
	s *zksync.Session
	m *zksync.Mutex
	c *zkcond.Cond
}

func (v *env) side(opts ...zksync.Option) *side {
	s := v.session(opts...)
	m := zksync.NewMutex(s, lockPath)
	return &side{s, m, zkcond.New(m, condPath)}
}

func (v *env) sides(n int) []*side {
	all := make([]*side, n)
	for i := range all {
		all[i] = v.side()
	}
	return all
}

// waits has somebody lock and wait, and returns when he does. then runs under the lock afterwards.
func (v *env) waits(w *side, then func()) (done <-chan struct{}) {
	v.t.Helper()
	before := len(v.children(condPath))
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.m.Lock()
		w.c.Wait()
		then()
		w.m.Unlock()
	}()
	v.queued(condPath, before+1)
	v.settled(lockPath, 0)
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
func (v *env) waitsContext(ctx context.Context, w *side) *attempt {
	v.t.Helper()
	before := len(v.children(condPath))
	l := v.lock(w.m)
	a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) })
	v.queued(condPath, before+1)
	v.settled(lockPath, 0)
	return a
}

func nothing() {}

func TestAcceptance037WaitReturnsAfterASignalByAnotherGoroutine(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.side()
		held := false
		done := v.waits(w, func() { held = w.m.Lease() != nil && w.m.Lease().Valid() })
		w.signals()
		v.awaits(done, "Wait")
		require.True(t, held, "it returns with the lock")
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}

func TestAcceptance038WaitReturnsAfterASignalByAnotherSession(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w, other := v.side(), v.side()
		a := v.waitsContext(context.Background(), w)
		old := v.lock(other.m)
		require.NoError(t, other.c.SignalContext(context.Background(), old))
		v.quiet()
		require.True(t, a.pending(), "the lock is still held")
		require.NoError(t, old.Unlock())
		l := v.granted(a)
		require.True(t, l.Valid())
		require.Positive(t, l.Token().Compare(old.Token()), "a new lease")
		require.NoError(t, l.Unlock())
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}

func TestAcceptance039WaitWithADeadlineHoldsTheLockAgain(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.side()
		var l, again *zksync.Lease
		v.eventually(func() bool {
			l = v.lock(w.m)
			ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
			defer cancel()
			start := time.Now()
			var err error
			again, err = w.c.WaitContext(ctx, l)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			v.within(start, 350*time.Millisecond, "WaitContext")
			require.GreaterOrEqual(t, time.Since(start), 250*time.Millisecond)
			if again == nil && !v.virtual { // a real server may take longer than the call waits for it
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
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}

// The deadline bounds the whole call: who finds the lock taken then returns without it.
func TestAcceptance113ATimedWaitEndsInTimeAlthoughSomebodyHoldsTheLock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w, other := v.side(), v.side()
		l := v.lock(w.m)
		ctx, cancel := context.WithTimeout(context.Background(), v.ample(250*time.Millisecond))
		defer cancel()
		a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) })
		v.queued(condPath, 1)
		held := v.lock(other.m)
		v.awaits(a.done, "WaitContext")
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		require.ErrorIs(t, a.err, zksync.ErrNotAcquired)
		require.Nil(t, a.lease)
		if v.virtual {
			end, _ := ctx.Deadline()
			require.LessOrEqual(t, a.at.Sub(end), 100*time.Millisecond)
		}
		require.NoError(t, held.Unlock())
		v.queued(condPath, 0)
		v.queued(lockPath, 0)
	})
}

func TestAcceptance040WithoutTheLockThereIsNoWaitingAndNoSignal(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.side()
		require.Panics(t, w.c.Wait)
		require.Panics(t, w.c.Signal)
		require.Panics(t, w.c.Broadcast)
		l := v.lock(w.m)
		require.NoError(t, l.Unlock())
		ctx := context.Background()
		_, err := w.c.WaitContext(ctx, l)
		require.ErrorIs(t, err, zksync.ErrReleased)
		require.ErrorIs(t, w.c.SignalContext(ctx, l), zksync.ErrReleased)
		require.ErrorIs(t, w.c.BroadcastContext(ctx, nil), zksync.ErrMisuse)
		_, err = w.c.WaitContext(ctx, nil)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		foreign := v.get(zksync.NewMutex(w.s, "/locks/b").LockContext)
		_, err = w.c.WaitContext(ctx, foreign)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorIs(t, w.c.SignalContext(ctx, foreign), zksync.ErrMisuse)
		require.True(t, foreign.Valid())
		require.NoError(t, foreign.Unlock())
		require.Empty(t, v.children(condPath))
	})
}

func TestMisuseOfAConditionIsReportedByTheFirstCall(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(v.session(), lockPath)
		for _, c := range []*zkcond.Cond{
			zkcond.New(m, "a"), zkcond.New(m, lockPath), zkcond.New(m, lockPath+"/cond"),
			zkcond.New(new(sync.Mutex), condPath), zkcond.New(nil, condPath),
			zkcond.New(zksync.NewMutex(nil, lockPath), condPath),
		} {
			_, err := c.WaitContext(context.Background(), nil)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.Panics(t, c.Signal)
		}
	})
}
