package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// timedCalls is every call of a mutex that takes a context.
var timedCalls = map[string]func(ctx context.Context, s *zksync.Session, m *zksync.Mutex) error{
	"LockContext": func(ctx context.Context, _ *zksync.Session, m *zksync.Mutex) error {
		_, err := m.LockContext(ctx)
		return err
	},
	"TryLockContext": func(ctx context.Context, _ *zksync.Session, m *zksync.Mutex) error {
		_, err := m.TryLockContext(ctx)
		return err
	},
	"Do": func(ctx context.Context, _ *zksync.Session, m *zksync.Mutex) error {
		return m.Do(ctx, func(context.Context, *zksync.Lease) error { return errors.New("must not run") })
	},
	"Contenders": func(ctx context.Context, _ *zksync.Session, m *zksync.Mutex) error {
		_, err := m.Contenders(ctx)
		return err
	},
	"Verify": func(ctx context.Context, s *zksync.Session, _ *zksync.Mutex) error {
		return zksync.Verify(ctx, s, lockPath, zksync.Token{Zxid: 1})
	},
}

// promptly runs every timed call against a fault and checks that each ends with its deadline.
func promptly(t *testing.T, fault func(v *env, s *zksync.Session) (heal func())) {
	t.Helper()
	for name, call := range timedCalls {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) { promptlyOnce(t, v, fault, call) })
		})
	}
}

func promptlyOnce(t *testing.T, v *env, fault func(v *env, s *zksync.Session) (heal func()),
	call func(context.Context, *zksync.Session, *zksync.Mutex) error) {
	t.Helper()
	s := v.session(zksync.WithTimeout(v.span(4*time.Second, lifetime)))
	m := zksync.NewMutex(s, lockPath)
	require.NoError(t, v.lock(m).Unlock())
	heal := fault(v, s)
	ctx, start := soon(t)
	err := call(ctx, s, m)
	took := time.Since(start)
	heal()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.GreaterOrEqual(t, took, deadline-time.Millisecond, "gave up too early")
	require.LessOrEqual(t, took, deadline+v.slack())
	require.NoError(t, v.lock(m).Unlock(), "afterwards all is well")
	v.queued(lockPath, 0)
}

func TestAcceptance113CallsKeepTheirDeadlineWhileNoServerTakesConnections(t *testing.T) {
	promptly(t, (*env).cutOff)
}

func TestAcceptance113CallsKeepTheirDeadlineInABlackHole(t *testing.T) {
	promptly(t, (*env).partition)
}

func TestAcceptance113CallsKeepTheirDeadlineWhileTheServerIsFrozen(t *testing.T) {
	for name, call := range timedCalls {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				promptlyOnce(t, v, func(v *env, _ *zksync.Session) func() { return v.srv.Freeze() }, call)
			})
		})
	}
}

func TestAcceptance113CallsKeepTheirDeadlineWhileTheServerIsDown(t *testing.T) {
	for name, call := range timedCalls {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				promptlyOnce(t, v, func(v *env, _ *zksync.Session) func() {
					v.srv.Stop()
					return v.srv.Restart
				}, call)
			})
		})
	}
}

// Those ahead come and go all the time, and every wake-up is a chance to start the clock anew.
func TestAcceptance113ADeadlineIsKeptWhileThoseAheadComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(4, zksync.WithHandover(0))
		holder := v.lock(ms[0])
		stop, end := context.WithCancel(context.Background())
		ended := make(chan struct{}, 2)
		for _, m := range ms[1:3] {
			go func() {
				defer func() { ended <- struct{}{} }()
				for stop.Err() == nil {
					ctx, cancel := context.WithTimeout(stop, 7*time.Millisecond)
					_, _ = m.LockContext(ctx)
					cancel()
				}
			}()
		}
		ctx, start := soon(t)
		_, err := ms[3].LockContext(ctx)
		took := time.Since(start)
		end()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, took, deadline+v.slack())
		<-ended
		<-ended
		v.queued(lockPath, 1)
		require.NoError(t, holder.Unlock())
	})
}

func TestAcceptance113ADeadlineIsKeptBehindABusyOwnerInTheSameProcess(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := v.mutexes(1)[0]
		held := v.lock(m)
		queue := make([]*attempt, 0, 20)
		stop, end := context.WithCancel(context.Background())
		defer end()
		for range 20 {
			queue = append(queue, begin(stop, m))
		}
		ctx, start := soon(t)
		_, err := m.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.took(start, deadline, "LockContext")
		_, err = m.TryLockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		end()
		for _, a := range queue {
			require.ErrorIs(t, v.failed(a), context.Canceled)
		}
		require.NoError(t, held.Unlock())
		v.queued(lockPath, 0)
	})
}
