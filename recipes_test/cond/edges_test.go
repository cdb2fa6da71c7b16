package cond_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

var _ = reentrant.NewMutex

// A second Unlock of l while WaitContext(l) is giving the place up.
func TestAnUnlockDuringWaitGivesTheLockToOneOnly(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		w, other := newSide(v), newSide(v)
		w.m = zksync.NewMutex(w.s, proving.LockPath, zksync.WithHandover(10))
		w.c = zkcond.New(w.m, proving.CondPath)
		l := v.Lock(w.m)
		local := proving.Call(context.Background(), w.m.LockContext) // another goroutine of the same process waits
		synctest.Wait()
		var held atomic.Bool
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && strings.Contains(strings.Join(q.Paths, " "), proving.CondPath) && held.CompareAndSwap(false, true) {
				return zktest.Verdict{Delay: 100 * time.Millisecond} // the request that gives the lock up takes a while
			}
			return zktest.Verdict{}
		})
		a := proving.Call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) })
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		require.NoError(t, l.Unlock()) // "may be called again and returns the same"
		time.Sleep(time.Second)
		if !a.Pending() {
			t.Logf("WaitContext: lease %v err %v", a.Lease, a.Err)
		}
		var lg *zksync.Lease
		if !local.Pending() {
			lg = local.Lease
			t.Logf("local: %v valid %v err %v node there %v", lg.Token(), lg.Valid(), lg.Err(), v.Exists(lg.Node()))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		l2, err := other.m.TryLockContext(ctx)
		if err == nil && lg != nil {
			t.Errorf("both were told that they hold the lock: %v (valid %v, err %v) and %v", lg.Token(), lg.Valid(), lg.Err(), l2.Token())
			time.Sleep(time.Minute)
			t.Errorf("a minute later, lg.Err(): %v valid %v", lg.Err(), lg.Valid())
			_ = lg.Unlock()
		}
		t.Log(err)
	})
}

func TestAnEndedContextBringsNoReleasedLeaseBack(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		w := newSide(v)
		l := v.Lock(w.m)
		require.NoError(t, l.Unlock())
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		again, err := w.c.WaitContext(ctx, l)
		require.ErrorIs(t, err, zksync.ErrReleased)
		require.Nil(t, again)
	})
}

func TestWaitContextUnderAMirrorHoldOfAnRWMutex(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := zkrwmutex.New(v.Session(), proving.LockPath)
		c := zkcond.New(rw, proving.CondPath)
		rw.Lock()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, rw.Lease()) })
		v.Queued(proving.CondPath, 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			rw.Lock()
			c.Signal()
			rw.Unlock()
		}()
		select {
		case <-done:
		case <-time.After(time.Second):
			t.Error("the signaller never gets in: deadlock")
		}
		cancel()
		<-a.Done
		t.Log(a.Err, a.Lease)
		if t.Failed() {
			t.FailNow()
		}
		rw.Unlock()
	})
}

func TestASignalWhoseDirectoryGoesMeanwhileIsForNobody(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		w, other := newSide(v), newSide(v)
		ctx, cancel := context.WithCancel(context.Background())
		a := waitsContext(v, ctx, w)
		other.m.Lock()
		var once atomic.Bool
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && len(q.Paths) == 1 && q.Path == proving.CondPath && once.CompareAndSwap(false, true) {
				return zktest.Verdict{Delay: 2 * time.Second}
			}
			return zktest.Verdict{}
		})
		go func() {
			time.Sleep(500 * time.Millisecond)
			cancel()
			<-a.Done
			time.Sleep(500 * time.Millisecond)
			v.Remove(proving.CondPath) // as the servers do with an empty container
		}()
		require.NotPanics(t, other.c.Signal)
		require.True(t, once.Load())
		other.m.Unlock()
	})
}

func TestWaitOfALostWriteLockLocksAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		rw := zkrwmutex.New(s, proving.LockPath)
		c := zkcond.New(rw, proving.CondPath)
		rw.Lock()
		l := rw.Lease()
		v.Server.Expire(s.ID())
		time.Sleep(time.Second)
		require.Error(t, l.Err())
		in := make(chan struct{})
		go func() { rw.Lock(); close(in); time.Sleep(time.Second); c.Broadcast(); rw.Unlock() }()
		time.Sleep(time.Second)
		c.Wait() // only locks again
		<-in
		require.True(t, rw.Lease().Valid())
		rw.Unlock()
		// in the middle
		rw.Lock()
		done := make(chan struct{})
		go func() { defer close(done); c.Wait(); rw.Unlock() }()
		v.Queued(proving.CondPath, 1)
		v.Server.Expire(s.ID())
		<-done
		require.True(t, rw.TryLock())
		rw.Unlock()
		// in the middle of the giving up
		for _, fate := range []zktest.Fate{zktest.LoseRequest, zktest.LoseReply, zktest.Duplicate} {
			rw.Lock()
			var once atomic.Bool
			rm := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if q.Op == zktest.Multi && once.CompareAndSwap(false, true) {
					go func() { time.Sleep(time.Millisecond); v.Server.Expire(s.ID()) }()
					return zktest.Verdict{Fate: fate, Delay: 2 * time.Millisecond}
				}
				return zktest.Verdict{}
			})
			c.Wait()
			rw.Unlock()
			rm()
			require.True(t, once.Load())
			require.True(t, rw.TryLock())
			rw.Unlock()
			rw.RLock()
			rw.RUnlock()
		}
		v.Queued(proving.CondPath, 0)
		v.Queued(proving.LockPath, 0)
	})
}
