package reentrant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func rrw(v *proving.Env, s *zksync.Session) *reentrant.RWMutex {
	return reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath))
}

func TestAcceptance031AReentrantReaderIsRefusedTheWriteLock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := rrw(v, v.Session())
		m.RLock()
		require.Panics(t, m.Lock)
		require.False(t, m.TryLock())
		_, err := m.LockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrUpgrade)
		var named *zksync.Error
		require.ErrorAs(t, err, &named)
		require.Equal(t, []string{"lock", proving.LockPath}, []string{named.Op, named.Path})
		require.Equal(t, 1, m.ReadHoldCount())
		m.RUnlock()
		m.Lock()
		m.Unlock()
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance032AWriterWhoReadsGoesOnReadingWhenItUnlocks(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m, other := rrw(v, v.Session()), zkrwmutex.New(v.Session(), proving.LockPath)
		for range 2 {
			m.Lock()
			m.RLock()
			token := m.Lease().Token()
			w := proving.Call(context.Background(), other.LockContext)
			v.Settled(proving.LockPath, 2)
			m.Unlock()
			require.False(t, m.HeldByCurrent())
			require.Equal(t, 1, m.ReadHoldCount())
			require.Positive(t, m.Lease().Token().Compare(token))
			v.Settled(proving.LockPath, 2)
			require.True(t, w.Pending(), "still read")
			m.RUnlock()
			require.NoError(t, v.Granted(w).Unlock())
			v.Queued(proving.LockPath, 0)
		}
	})
}

func TestAcceptance033NestedWritesAndReadsInsideAWriteAndADowngradeComplete(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m, other := rrw(v, v.Session()), zkrwmutex.New(v.Session(), proving.LockPath)
		m.Lock()
		m.Lock()
		m.RLock()
		m.RLock()
		m.Unlock()
		require.Equal(t, 1, m.HoldCount())
		m.RUnlock()
		m.Lock()
		m.Unlock()
		require.ErrorIs(t, func() error { _, err := other.TryRLockContext(context.Background()); return err }(), zksync.ErrNotAcquired)
		m.Unlock() // downgrades
		l := v.Get(other.RLockContext)
		require.NoError(t, l.Unlock())
		m.RLock()
		m.RUnlock()
		m.RUnlock()
		require.Panics(t, m.RUnlock)
		require.PanicsWithValue(t, "reentrant: Unlock of unlocked RWMutex", m.Unlock)
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance034ReadingTwiceNeedsTwoUnlocks(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m, other := rrw(v, v.Session()), zkrwmutex.New(v.Session(), proving.LockPath)
		m.RLock()
		w := proving.Call(context.Background(), other.LockContext)
		v.Settled(proving.LockPath, 2)
		m.RLock() // although a writer waits: or it would wait for itself
		m.RUnlock()
		v.Quiet()
		require.True(t, w.Pending())
		m.RUnlock()
		require.NoError(t, v.Granted(w).Unlock())
	})
}

func TestAcceptance112ALostReentrantHoldIsGoneForAllLevels(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m, other := rrw(v, s), zkrwmutex.New(v.Session(), proving.LockPath)
		m.Lock()
		m.Lock()
		m.RLock()
		token := m.Lease().Token()
		w := proving.Call(context.Background(), other.LockContext)
		v.Settled(proving.LockPath, 2)
		v.Server.Expire(s.ID())
		held := v.Granted(w)
		v.Quiet()
		require.Zero(t, m.HoldCount())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := m.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "somebody else holds")
		require.NoError(t, held.Unlock())
		m.Lock()
		require.Positive(t, m.Lease().Token().Compare(token))
		m.Unlock()
		m.RUnlock() // those of the lost hold
		m.Unlock()
		m.Unlock()
		require.Panics(t, m.Unlock)
		v.Queued(proving.LockPath, 0)
	})
}

func TestReentrantLeasesCountEachForItself(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m, other := rrw(v, v.Session()), zkrwmutex.New(v.Session(), proving.LockPath)
		ctx := reentrant.WithOwner(context.Background())
		write, err := m.LockContext(ctx)
		require.NoError(t, err)
		read, err := m.RLockContext(ctx)
		require.NoError(t, err)
		require.NoError(t, write.Unlock())
		require.True(t, read.Valid())
		_, err = other.TryRLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired, "it stays exclusive")
		_, err = m.LockContext(ctx)
		require.ErrorIs(t, err, zksync.ErrUpgrade)
		require.NoError(t, read.Unlock())
		v.Queued(proving.LockPath, 0)
		read, err = m.RLockContext(ctx)
		require.NoError(t, err)
		again, err := m.TryRLockContext(ctx)
		require.NoError(t, err)
		require.NoError(t, read.Unlock())
		require.True(t, again.Valid())
		require.NoError(t, again.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestScopesOfAReentrantRWMutexNest(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m, other := rrw(v, v.Session()), zkrwmutex.New(v.Session(), proving.LockPath)
		fine := func(context.Context, *zksync.Lease) error { return nil }
		require.NoError(t, m.Do(context.Background(), func(ctx context.Context, w *zksync.Lease) error {
			require.True(t, m.HeldByOwner(ctx))
			require.NoError(t, m.RDo(ctx, func(ctx context.Context, r *zksync.Lease) error {
				require.Equal(t, w.Token(), r.Token())
				require.Equal(t, []int{1, 1}, []int{m.HoldCountContext(ctx), m.ReadHoldCountContext(ctx)})
				return m.Do(ctx, fine)
			}))
			require.False(t, other.TryRLock())
			return nil
		}))
		require.NoError(t, m.RDo(context.Background(), func(ctx context.Context, _ *zksync.Lease) error {
			require.False(t, m.HeldByOwner(ctx))
			require.ErrorIs(t, m.Do(ctx, fine), zksync.ErrUpgrade)
			v.Left(proving.LockPath, 1, "only this reader is there")
			require.True(t, other.TryRLock())
			other.RUnlock()
			return nil
		}))
		require.PanicsWithValue(t, "boom", func() {
			_ = m.Do(context.Background(), func(context.Context, *zksync.Lease) error { panic("boom") })
		})
		v.Queued(proving.LockPath, 0)
	})
}

func TestAScopeOfAReentrantRWMutexEndsWithItsLease(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for _, do := range []func(context.Context, func(context.Context, *zksync.Lease) error) error{rrw(v, s).Do, rrw(v, s).RDo} {
			err := do(context.Background(), func(ctx context.Context, _ *zksync.Lease) error {
				v.Server.Expire(s.ID())
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), zksync.ErrLost)
				return nil
			})
			require.ErrorIs(t, err, zksync.ErrLost)
		}
	})
}

// The downgrade waits for a connection while the owner gives its last level back, and wants to write again.
func TestWhoHasUnlockedAllLevelsDuringADowngradeMayLockAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := rrw(v, s)
		m.Lock()
		m.RLock()
		heal := v.Server.Partition(s.ID())
		m.Unlock()
		m.RUnlock()
		time.AfterFunc(time.Second, heal)
		require.NotPanics(t, m.Lock)
		require.Equal(t, 1, m.HoldCount())
		m.Unlock()
		v.Queued(proving.LockPath, 0)
	})
}
