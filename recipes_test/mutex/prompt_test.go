package mutex_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
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
		return zksync.Verify(ctx, s, proving.LockPath, zksync.Token{Zxid: 1})
	},
}

// promptly runs every timed call against a fault and checks that each ends with its deadline.
func promptly(t *testing.T, fault func(v *proving.Env, s *zksync.Session) (heal func())) {
	t.Helper()
	for name, call := range timedCalls {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) { promptlyOnce(t, v, fault, call) })
		})
	}
}

func promptlyOnce(t *testing.T, v *proving.Env, fault func(v *proving.Env, s *zksync.Session) (heal func()),
	call func(context.Context, *zksync.Session, *zksync.Mutex) error) {
	t.Helper()
	s := v.Session(zksync.WithTimeout(v.Span(4*time.Second, proving.Lifetime)))
	m := zksync.NewMutex(s, proving.LockPath)
	require.NoError(t, v.Lock(m).Unlock())
	heal := fault(v, s)
	ctx, start := proving.Soon(t)
	err := call(ctx, s, m)
	took := time.Since(start)
	heal()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.GreaterOrEqual(t, took, proving.Deadline-time.Millisecond, "gave up too early")
	require.LessOrEqual(t, took, proving.Deadline+v.Slack())
	require.NoError(t, v.Lock(m).Unlock(), "afterwards all is well")
	v.Queued(proving.LockPath, 0)
}

func TestAcceptance113CallsKeepTheirDeadlineWhileNoServerTakesConnections(t *testing.T) {
	promptly(t, (*proving.Env).CutOff)
}

func TestAcceptance113CallsKeepTheirDeadlineInABlackHole(t *testing.T) {
	promptly(t, (*proving.Env).Partition)
}

func TestAcceptance113CallsKeepTheirDeadlineWhileTheServerIsFrozen(t *testing.T) {
	for name, call := range timedCalls {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				promptlyOnce(t, v, func(v *proving.Env, _ *zksync.Session) func() { return v.Server.Freeze() }, call)
			})
		})
	}
}

func TestAcceptance113CallsKeepTheirDeadlineWhileTheServerIsDown(t *testing.T) {
	for name, call := range timedCalls {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				promptlyOnce(t, v, func(v *proving.Env, _ *zksync.Session) func() {
					v.Server.Stop()
					return v.Server.Restart
				}, call)
			})
		})
	}
}

// Those ahead come and go all the time, and every wake-up is a chance to start the clock again.
func TestAcceptance113ADeadlineIsKeptWhileThoseAheadComeAndGo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(4, zksync.WithHandover(0))
		holder := v.Lock(ms[0])
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
		ctx, start := proving.Soon(t)
		_, err := ms[3].LockContext(ctx)
		took := time.Since(start)
		end()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, took, proving.Deadline+v.Slack())
		<-ended
		<-ended
		v.Queued(proving.LockPath, 1)
		require.NoError(t, holder.Unlock())
	})
}

func TestAcceptance113ADeadlineIsKeptBehindABusyOwnerInTheSameProcess(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		held := v.Lock(m)
		queue := make([]*proving.Attempt, 0, 20)
		stop, end := context.WithCancel(context.Background())
		defer end()
		for range 20 {
			queue = append(queue, proving.Begin(stop, m))
		}
		ctx, start := proving.Soon(t)
		_, err := m.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.Took(start, proving.Deadline, "LockContext")
		_, err = m.TryLockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		end()
		for _, a := range queue {
			require.ErrorIs(t, v.Failed(a), context.Canceled)
		}
		require.NoError(t, held.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}
