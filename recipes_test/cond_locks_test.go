package recipes_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance045WaitReleasesAllLevelsAndRestoresThem(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		m := reentrant.NewMutex(zksync.NewMutex(s, lockPath))
		c := zkcond.New(m, condPath)
		other := v.side()
		counts := make(chan int, 3)
		go func() {
			m.Lock()
			m.Lock()
			c.Wait()
			counts <- m.HoldCount()
			m.Unlock()
			counts <- m.HoldCount()
			m.Unlock()
			counts <- m.HoldCount()
		}()
		v.queued(condPath, 1)
		v.queued(lockPath, 0)
		other.signals()
		require.Equal(t, []int{2, 1, 0}, []int{<-counts, <-counts, <-counts})
		v.queued(lockPath, 0)

		// With leases: the level that waits has a new one, the others' Unlocks still count.
		ctx := reentrant.WithOwner(context.Background())
		outer, err := m.LockContext(ctx)
		require.NoError(t, err)
		inner, err := m.LockContext(ctx)
		require.NoError(t, err)
		a := call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, inner) })
		v.queued(condPath, 1)
		other.signals()
		again := v.granted(a)
		require.Equal(t, 2, m.HoldCountContext(ctx))
		require.NoError(t, inner.Unlock(), "it has ended, and is not counted twice")
		require.Equal(t, 2, m.HoldCountContext(ctx))
		require.NoError(t, again.Unlock())
		require.Equal(t, 1, m.HoldCountContext(ctx))
		v.queued(lockPath, 1)
		require.NoError(t, outer.Unlock())
		v.queued(lockPath, 0)
	})
}

func TestAcceptance045WaitReleasesReadsInsideAWriteToo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		m := reentrant.NewRWMutex(zkrwmutex.New(v.session(), lockPath))
		c := zkcond.New(m, condPath)
		other := zkrwmutex.New(v.session(), lockPath)
		counts := make(chan int, 2)
		go func() {
			m.Lock()
			m.Lock()
			m.RLock()
			c.Wait()
			counts <- m.HoldCount()
			counts <- m.ReadHoldCount()
			m.RUnlock()
			m.Unlock()
			m.Unlock()
		}()
		v.queued(condPath, 1)
		v.queued(lockPath, 0)
		require.NoError(t, other.Do(context.Background(), func(ctx context.Context, l *zksync.Lease) error {
			return zkcond.New(other, condPath).SignalContext(ctx, l)
		}))
		require.Equal(t, []int{2, 1}, []int{<-counts, <-counts})
		v.queued(lockPath, 0)
	})
}

func TestAConditionOfTheWriteSideOfAReadWriteLock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rws := []*zkrwmutex.RWMutex{zkrwmutex.New(v.session(), lockPath), zkrwmutex.New(v.session(), lockPath)}
		full := 0 // under the lock
		var conds []*zkcond.Cond
		for _, rw := range rws {
			conds = append(conds, zkcond.New(rw, condPath))
		}
		var all sync.WaitGroup
		all.Go(func() {
			rws[0].Lock()
			for full == 0 {
				conds[0].Wait()
			}
			full--
			rws[0].Unlock()
		})
		v.queued(condPath, 1)
		read := v.get(rws[1].RLockContext) // readers get in while it waits
		_, err := conds[1].WaitContext(context.Background(), read)
		require.ErrorIs(t, err, zksync.ErrMisuse, "a reader may not wait")
		require.Panics(t, conds[1].Signal)
		require.NoError(t, read.Unlock())
		rws[1].Lock()
		full++
		conds[1].Signal()
		rws[1].Unlock()
		all.Wait()
		require.Zero(t, full)
		v.queued(condPath, 0)
	})
}
