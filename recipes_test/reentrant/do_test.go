package reentrant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

// nestable is what the reentrant locks have in common.
type nestable interface {
	zksync.Locker
	TryLock() bool
	LockContext(ctx context.Context) (*zksync.Lease, error)
	TryLockContext(ctx context.Context) (*zksync.Lease, error)
	Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error
	HoldCount() int
}

// eachNestable runs f with every kind of reentrant lock. Nothing in it may wait for itself: its
// context ends then.
func eachNestable(t *testing.T, f func(t *testing.T, v *proving.Env, ctx context.Context, m nestable)) {
	t.Helper()
	for name, lock := range map[string]func(v *proving.Env) nestable{
		"Mutex": func(v *proving.Env) nestable {
			return reentrant.NewMutex(zksync.NewMutex(v.Session(), proving.LockPath))
		},
		"RWMutex": func(v *proving.Env) nestable { return rrw(v, v.Session()) },
	} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
				defer cancel()
				f(t, v, ctx, lock(v))
				v.Queued(proving.LockPath, 0)
			})
		})
	}
}

func TestDoIsNestedInALockOfItsGoroutine(t *testing.T) {
	eachNestable(t, func(t *testing.T, v *proving.Env, ctx context.Context, m nestable) {
		m.Lock()
		require.NoError(t, m.Do(ctx, func(ctx context.Context, _ *zksync.Lease) error {
			require.Equal(t, 2, m.HoldCount())
			return m.Do(ctx, func(context.Context, *zksync.Lease) error {
				require.Equal(t, 3, m.HoldCount())
				return nil
			})
		}))
		require.Equal(t, 1, m.HoldCount())
		m.Unlock()
		v.Queued(proving.LockPath, 0)

		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		require.NoError(t, m.Do(ctx, func(context.Context, *zksync.Lease) error { return nil }))
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
	})
}

func TestALockOfTheGoroutineIsNestedInItsDo(t *testing.T) {
	eachNestable(t, func(t *testing.T, _ *proving.Env, ctx context.Context, m nestable) {
		require.NoError(t, m.Do(ctx, func(context.Context, *zksync.Lease) error {
			require.Equal(t, 1, m.HoldCount())
			require.True(t, m.TryLock())
			l, err := m.LockContext(ctx) // without the owner
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
			m.Unlock()
			return nil
		}))
	})
}

// Whoever has the context of the function is nested, on whichever goroutine; nobody else is.
func TestGoroutinesWithTheContextOfADoAreNestedInIt(t *testing.T) {
	eachNestable(t, func(t *testing.T, _ *proving.Env, ctx context.Context, m nestable) {
		for _, outer := range []bool{false, true} {
			if outer {
				m.Lock()
			}
			require.NoError(t, m.Do(ctx, func(inner context.Context, _ *zksync.Lease) error {
				done := make(chan struct{})
				go func() {
					defer close(done)
					for _, lock := range []func(context.Context) (*zksync.Lease, error){m.LockContext, m.TryLockContext} {
						l, err := lock(inner)
						require.NoError(t, err)
						require.NoError(t, l.Unlock())
					}
					require.Zero(t, m.HoldCount())
					_, err := m.TryLockContext(ctx)
					require.ErrorIs(t, err, zksync.ErrNotAcquired)
					require.False(t, m.TryLock())
				}()
				<-done
				return nil
			}))
			if outer {
				m.Unlock()
			}
		}
	})
}

func TestReadsOfTheGoroutineAreNestedInScopes(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
		defer cancel()
		m := rrw(v, v.Session())
		fine := func(context.Context, *zksync.Lease) error { return nil }
		m.RLock()
		require.NoError(t, m.RDo(ctx, func(context.Context, *zksync.Lease) error {
			require.Equal(t, 2, m.ReadHoldCount())
			m.RLock()
			m.RUnlock()
			return nil
		}))
		require.ErrorIs(t, m.Do(ctx, fine), zksync.ErrUpgrade)
		m.RUnlock()
		m.Lock()
		require.NoError(t, m.RDo(ctx, func(context.Context, *zksync.Lease) error {
			require.Equal(t, []int{1, 1}, []int{m.HoldCount(), m.ReadHoldCount()})
			return nil
		}))
		m.Unlock()
		v.Queued(proving.LockPath, 0)
	})
}

// A goroutine that the function starts may signal: it acts for who holds.
func TestAGoroutineInsideADoMaySignal(t *testing.T) {
	eachNestable(t, func(t *testing.T, v *proving.Env, ctx context.Context, m nestable) {
		other := zksync.NewMutex(v.Session(), proving.LockPath)
		woken := make(chan struct{})
		go func() {
			defer close(woken)
			other.Lock()
			zkcond.New(other, proving.CondPath).Wait()
			other.Unlock()
		}()
		v.Settled(proving.CondPath, 1)
		c := zkcond.New(m, proving.CondPath)
		m.Lock()
		require.NoError(t, m.Do(ctx, func(context.Context, *zksync.Lease) error {
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Signal()
			}()
			<-done
			return nil
		}))
		refused := make(chan any)
		go func() {
			defer func() { refused <- recover() }()
			c.Signal()
		}()
		require.Nil(t, <-refused, "it has neither the lock nor a lease, and needs none")
		m.Unlock()
		v.Awaits(woken, "the signal")
		v.Queued(proving.CondPath, 0)
	})
}

// They may begin a hold of another lock together, in either form.
func TestTwoGoroutinesOfOneDoBeginAHoldOfAnotherLockTogether(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		outer := reentrant.NewMutex(zksync.NewMutex(s, "/locks/outer"))
		inner, blocker := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath)), v.Mutexes(1)[0]
		held := v.Get(blocker.LockContext)
		time.AfterFunc(time.Second, func() { _ = held.Unlock() })
		require.NoError(t, outer.Do(context.Background(), func(ctx context.Context, _ *zksync.Lease) error {
			other := proving.Call(ctx, inner.LockContext)
			v.Quiet()
			inner.Lock()
			l := v.Granted(other) // which nobody unlocks before
			require.Equal(t, 2, inner.HoldCount())
			require.NoError(t, l.Unlock())
			inner.Unlock()
			return nil
		}))
		v.Queued(proving.LockPath, 0)
	})
}
