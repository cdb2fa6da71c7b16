package types_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// The context of a call ends with the error of another goroutine of its errgroup, which has met zk.ErrNoNode. That is no answer of
// the servers to the call.
func TestTheCauseOfAContextIsNoAnswerOfTheServers(t *testing.T) {
	calls := map[string]struct {
		prepare func(ctx context.Context, t *testing.T, s *zksync.Session)
		call    func(ctx context.Context, s *zksync.Session) (any, error)
	}{
		"Map.Load": {func(ctx context.Context, t *testing.T, s *zksync.Session) {
			require.NoError(t, zkmap.New[string, int](s, "/m").Store(ctx, "a", 1))
		}, func(ctx context.Context, s *zksync.Session) (any, error) {
			_, ok, err := zkmap.New[string, int](s, "/m").Load(ctx, "a")
			return ok, err
		}},
		"Int64.Load": {func(ctx context.Context, t *testing.T, s *zksync.Session) {
			require.NoError(t, zkatomic.NewInt64(s, "/n").Store(ctx, 7))
		}, func(ctx context.Context, s *zksync.Session) (any, error) { return zkatomic.NewInt64(s, "/n").Load(ctx) }},
		"durable Holder": {func(ctx context.Context, t *testing.T, s *zksync.Session) {
			_, err := zkdurable.NewMutex(s, "/d").Lock(ctx, "a")
			require.NoError(t, err)
		}, func(ctx context.Context, s *zksync.Session) (any, error) {
			return zkdurable.NewMutex(s, "/d").Holder(ctx)
		}},
		"durable Lock": {func(ctx context.Context, t *testing.T, s *zksync.Session) {
			_, err := zkdurable.NewMutex(s, "/d").Lock(ctx, "a")
			require.NoError(t, err)
		}, func(ctx context.Context, s *zksync.Session) (any, error) {
			return zkdurable.NewMutex(s, "/d").Lock(ctx, "b")
		}},
		"Queue.Len": {func(ctx context.Context, t *testing.T, s *zksync.Session) {
			require.NoError(t, zkqueue.New[int](s, "/q").Put(ctx, 7))
		}, func(ctx context.Context, s *zksync.Session) (any, error) { return zkqueue.New[int](s, "/q").Len(ctx) }},
		"Mutex": {func(ctx context.Context, t *testing.T, s *zksync.Session) {
			_, err := zksync.NewMutex(s, "/l").LockContext(ctx)
			require.NoError(t, err)
		}, func(ctx context.Context, s *zksync.Session) (any, error) {
			return zksync.NewMutex(s, "/l").LockContext(ctx)
		}},
	}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				c.prepare(t.Context(), t, s)
				v.Server.Intercept(zktest.On(zktest.Any, "**").Of(s.ID()).Delay(time.Second).Maybe())
				g, ctx := errgroup.WithContext(t.Context())
				g.Go(func() error { time.Sleep(500 * time.Millisecond); return zk.ErrNoNode })
				got, err := c.call(ctx, s)
				_ = g.Wait()
				synctest.Wait()
				require.Error(t, err, "it returns %+v", got)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, zk.ErrNoNode, "the cause is there for the caller")
				require.NoError(t, s.Close())
			}, zktest.WithLeftovers())
		})
	}
}

// A call that has changed nothing is not in doubt because another goroutine of its errgroup is.
func TestACallIsNotAmbiguousBecauseTheCauseOfItsContextIs(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		q := zkqueue.New[int](s, "/q", zkqueue.WithCapacity(1))
		require.NoError(t, q.Put(t.Context(), 1))
		g, ctx := errgroup.WithContext(t.Context())
		g.Go(func() error { time.Sleep(time.Second); return errs.MarkAmbiguous(zksync.ErrSessionExpired) })
		err := q.Put(ctx, 2) // waits for room
		_ = g.Wait()
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, zksync.Ambiguous(err), "nothing was sent: %v", err)
	})
}

// Waits that may not end: the context ends with zk.ErrNoNode as its cause, at any instant.
func TestNoWaitEndsWellBecauseOfTheCauseOfItsContext(t *testing.T) {
	waits := map[string]func(t *testing.T, o, s *zksync.Session) func(ctx context.Context) error{
		"Latch.Wait": func(t *testing.T, o, s *zksync.Session) func(ctx context.Context) error {
			require.NoError(t, zklatch.New(o, "/a", 2).CountDown(t.Context()))
			return zklatch.New(s, "/a", 2).Wait
		},
		"Gate.Wait": func(t *testing.T, o, s *zksync.Session) func(ctx context.Context) error {
			require.NoError(t, zklatch.NewGate(o, "/a").Close(t.Context()))
			return zklatch.NewGate(s, "/a").Wait
		},
		"WaitGroup": func(t *testing.T, o, s *zksync.Session) func(ctx context.Context) error {
			zkwaitgroup.New(o, "/a").Add(1)
			return zkwaitgroup.New(s, "/a").WaitContext
		},
		"Mutex": func(t *testing.T, o, s *zksync.Session) func(ctx context.Context) error {
			_, err := zksync.NewMutex(o, "/a").LockContext(t.Context())
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := zksync.NewMutex(s, "/a").LockContext(ctx); return err }
		},
		"RWMutex": func(t *testing.T, o, s *zksync.Session) func(ctx context.Context) error {
			_, err := zkrwmutex.New(o, "/a").LockContext(t.Context())
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := zkrwmutex.New(s, "/a").RLockContext(ctx); return err }
		},
		"Semaphore": func(t *testing.T, o, s *zksync.Session) func(ctx context.Context) error {
			require.NoError(t, zksemaphore.NewWeighted(o, "/a", 1).Acquire(t.Context(), 1))
			return func(ctx context.Context) error { return zksemaphore.NewWeighted(s, "/a", 1).Acquire(ctx, 1) }
		},
		"Durable": func(t *testing.T, o, s *zksync.Session) func(ctx context.Context) error {
			_, err := zkdurable.NewMutex(o, "/a").Lock(t.Context(), "a")
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := zkdurable.NewMutex(s, "/a").Lock(ctx, "b"); return err }
		},
	}
	for name, w := range waits {
		t.Run(name, func(t *testing.T) {
			for at := 250 * time.Millisecond; at < 6*time.Second; at += 500 * time.Millisecond { // in each request
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					o, s := v.Session(), v.Session()
					wait := w(t, o, s)
					v.Server.Intercept(zktest.On(zktest.Any, "**").Of(s.ID()).Delay(500 * time.Millisecond).Maybe())
					g, ctx := errgroup.WithContext(t.Context())
					g.Go(func() error { time.Sleep(at); return zk.ErrNoNode })
					err := wait(ctx)
					_ = g.Wait()
					synctest.Wait()
					assert.Error(t, err, fmt.Sprint(at))
					require.NoError(t, s.Close())
				}, zktest.WithLeftovers())
				if t.Failed() {
					return
				}
			}
		})
	}
}
