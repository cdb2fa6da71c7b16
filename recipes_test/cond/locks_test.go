package cond_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance045WaitReleasesAllLevelsAndRestoresThem(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		c := zkcond.New(m, proving.CondPath)
		other := newSide(v)
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
		v.Queued(proving.CondPath, 1)
		v.Queued(proving.LockPath, 0)
		other.signals()
		require.Equal(t, []int{2, 1, 0}, []int{<-counts, <-counts, <-counts})
		v.Queued(proving.LockPath, 0)

		// With leases: the level that waits has a new one, the others' Unlocks still count.
		ctx := reentrant.WithOwner(context.Background())
		outer, err := m.LockContext(ctx)
		require.NoError(t, err)
		inner, err := m.LockContext(ctx)
		require.NoError(t, err)
		a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, inner) })
		v.Queued(proving.CondPath, 1)
		other.signals()
		again := v.Granted(a)
		require.Equal(t, 2, m.HoldCountContext(ctx))
		require.NoError(t, inner.Unlock(), "it has ended, and is not counted twice")
		require.Equal(t, 2, m.HoldCountContext(ctx))
		require.NoError(t, again.Unlock())
		require.Equal(t, 1, m.HoldCountContext(ctx))
		v.Queued(proving.LockPath, 1)
		require.NoError(t, outer.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance045WaitReleasesReadsInsideAWriteToo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := reentrant.NewRWMutex(zkrwmutex.New(v.Session(), proving.LockPath))
		c := zkcond.New(m, proving.CondPath)
		other := zkrwmutex.New(v.Session(), proving.LockPath)
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
		v.Queued(proving.CondPath, 1)
		v.Queued(proving.LockPath, 0)
		require.NoError(t, other.Do(context.Background(), func(ctx context.Context, l *zksync.Lease) error {
			return zkcond.New(other, proving.CondPath).SignalContext(ctx, l)
		}))
		require.Equal(t, []int{2, 1}, []int{<-counts, <-counts})
		v.Queued(proving.LockPath, 0)
	})
}

func TestAConditionOfTheWriteSideOfAReadWriteLock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rws := []*zkrwmutex.RWMutex{zkrwmutex.New(v.Session(), proving.LockPath), zkrwmutex.New(v.Session(), proving.LockPath)}
		full := 0 // under the lock
		var conds []*zkcond.Cond
		for _, rw := range rws {
			conds = append(conds, zkcond.New(rw, proving.CondPath))
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
		v.Queued(proving.CondPath, 1)
		read := v.Get(rws[1].RLockContext) // readers get in while it waits
		_, err := conds[1].WaitContext(context.Background(), read)
		require.ErrorIs(t, err, zksync.ErrMisuse, "a reader may not wait")
		require.NotPanics(t, conds[1].Signal, "a reader may signal")
		require.NoError(t, read.Unlock())
		rws[1].Lock()
		full++
		conds[1].Signal()
		rws[1].Unlock()
		all.Wait()
		require.Zero(t, full)
		v.Queued(proving.CondPath, 0)
	})
}
