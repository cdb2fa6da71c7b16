package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

// nestable is what the reentrant locks have in common.
type nestable interface {
	Lock()
	TryLock() bool
	Unlock()
	LockContext(ctx context.Context) (*zksync.Lease, error)
	TryLockContext(ctx context.Context) (*zksync.Lease, error)
	Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error
	HoldCount() int
}

// eachNestable runs f with every kind of reentrant lock. Nothing in it may wait for itself: its
// context ends then.
func eachNestable(t *testing.T, f func(t *testing.T, v *env, ctx context.Context, m nestable)) {
	t.Helper()
	for name, lock := range map[string]func(v *env) nestable{
		"Mutex":   func(v *env) nestable { return reentrant.NewMutex(zksync.NewMutex(v.session(), lockPath)) },
		"RWMutex": func(v *env) nestable { return v.rrw(v.session()) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				ctx, cancel := context.WithTimeout(context.Background(), v.patience())
				defer cancel()
				f(t, v, ctx, lock(v))
				v.queued(lockPath, 0)
			})
		})
	}
}

func TestDoIsNestedInALockOfItsGoroutine(t *testing.T) {
	eachNestable(t, func(t *testing.T, v *env, ctx context.Context, m nestable) {
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
		v.queued(lockPath, 0)

		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		require.NoError(t, m.Do(ctx, func(context.Context, *zksync.Lease) error { return nil }))
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
	})
}

func TestALockOfTheGoroutineIsNestedInItsDo(t *testing.T) {
	eachNestable(t, func(t *testing.T, _ *env, ctx context.Context, m nestable) {
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
	eachNestable(t, func(t *testing.T, _ *env, ctx context.Context, m nestable) {
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
	each(t, func(t *testing.T, v *env) {
		ctx, cancel := context.WithTimeout(context.Background(), v.patience())
		defer cancel()
		m := v.rrw(v.session())
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
		v.queued(lockPath, 0)
	})
}

// A goroutine that the function starts may signal: it acts for who holds.
func TestAGoroutineInsideADoMaySignal(t *testing.T) {
	eachNestable(t, func(t *testing.T, v *env, ctx context.Context, m nestable) {
		other := zksync.NewMutex(v.session(), lockPath)
		woken := make(chan struct{})
		go func() {
			defer close(woken)
			other.Lock()
			zkcond.New(other, condPath).Wait()
			other.Unlock()
		}()
		v.settled(condPath, 1)
		c := zkcond.New(m, condPath)
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
		require.ErrorIs(t, (<-refused).(error), zksync.ErrMisuse, "it has neither the lock nor a lease")
		m.Unlock()
		v.awaits(woken, "the signal")
		v.queued(condPath, 0)
	})
}

// They may begin a hold of another lock together, in either form.
func TestTwoGoroutinesOfOneDoBeginAHoldOfAnotherLockTogether(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		outer := reentrant.NewMutex(zksync.NewMutex(s, "/locks/outer"))
		inner, blocker := reentrant.NewMutex(zksync.NewMutex(s, lockPath)), v.mutexes(1)[0]
		held := v.get(blocker.LockContext)
		time.AfterFunc(time.Second, func() { _ = held.Unlock() })
		require.NoError(t, outer.Do(context.Background(), func(ctx context.Context, _ *zksync.Lease) error {
			other := call(ctx, inner.LockContext)
			v.quiet()
			inner.Lock()
			l := v.granted(other) // which nobody unlocks before
			require.Equal(t, 2, inner.HoldCount())
			require.NoError(t, l.Unlock())
			inner.Unlock()
			return nil
		}))
		v.queued(lockPath, 0)
	})
}
