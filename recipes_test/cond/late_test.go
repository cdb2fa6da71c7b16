package cond_test

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// When the time of a wait is up it locks again, and its request is applied twice: then the server is slow to delete anything.
func TestAcceptance113AWaitWhoseSecondEntryIsMadeTwiceKeepsItsDeadline(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath)
		c := zkcond.New(m, proving.CondPath)
		l, err := m.LockContext(context.Background())
		require.NoError(t, err)
		twice := v.Server.Intercept(zktest.On(zktest.Create, proving.LockPath+"/*").Times(1).Delay(10 * time.Millisecond).Duplicate())
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Delete && path.Dir(q.Path) == proving.LockPath {
				return zktest.Verdict{Delay: 5 * time.Second}
			}
			return zktest.Verdict{}
		})
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		again, err := c.WaitContext(ctx, l)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Nil(t, again)
		require.LessOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.Equal(t, 1, twice.Fired())
		v.Later()
		require.Empty(t, v.Server.Children(proving.LockPath))
	})
}

// All of its levels were given back while it waited, so it gives the lock back that it has locked again.
func TestAcceptance113AWaitThatHasNoLevelLeftKeepsItsDeadline(t *testing.T) {
	type locker interface {
		zksync.Locker
		LockContext(ctx context.Context) (*zksync.Lease, error)
	}
	locks := map[string]func(v *proving.Env) locker{
		"Mutex":   func(v *proving.Env) locker { return reentrant.NewMutex(v.Mutexes(1)[0]) },
		"RWMutex": func(v *proving.Env) locker { return reentrant.NewRWMutex(zkrwmutex.New(v.Session(), proving.LockPath)) },
	}
	for name, lock := range locks {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				m := lock(v)
				c := zkcond.New(m, proving.CondPath)
				owner := reentrant.WithOwner(context.Background())
				l, err := m.LockContext(owner)
				require.NoError(t, err)
				inner, err := m.LockContext(owner)
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(owner, 300*time.Millisecond)
				defer cancel()
				start := time.Now()
				a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, inner) })
				v.Queued(proving.CondPath, 1)
				require.NoError(t, inner.Unlock())
				require.NoError(t, l.Unlock())
				slow := v.Server.Intercept(zktest.On(zktest.Delete, proving.LockPath+"/*").Delay(5 * time.Second))
				v.Awaits(a.Done, "WaitContext")
				require.Positive(t, slow.Fired())
				require.LessOrEqual(t, a.At.Sub(start), 400*time.Millisecond)
				slow.Remove()
				v.Queued(proving.LockPath, 0)
			})
		})
	}
}

// The same of one that is signalled just before its time is up: it locks again, gives that back, and uses the signal up.
func TestAcceptance113AWaitThatIsSignalledLateAndHasNoLevelLeftKeepsItsDeadline(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		c := zkcond.New(m, proving.CondPath)
		owner := reentrant.WithOwner(context.Background())
		l, err := m.LockContext(owner)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(owner, 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		a := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, l) })
		v.Queued(proving.CondPath, 1)
		require.NoError(t, l.Unlock())
		other := v.Mutexes(1)[0]
		held := v.Lock(other)
		slow := v.Server.Intercept(zktest.On(zktest.Delete, proving.LockPath+"/*").Of(s.ID()).Delay(5 * time.Second))
		time.Sleep(290*time.Millisecond - time.Since(start))
		require.NoError(t, zkcond.New(other, proving.CondPath).SignalContext(context.Background(), held))
		require.NoError(t, held.Unlock())
		v.Awaits(a.Done, "WaitContext")
		require.Positive(t, slow.Fired())
		require.LessOrEqual(t, a.At.Sub(start), 400*time.Millisecond)
		slow.Remove()
		v.Queued(proving.LockPath, 0)
		v.Queued(proving.CondPath, 0)
	})
}

// The context of a wait ends while the lock is given up. Its cause is the loss of another lease, or the end of another session: the wait must
// not take that for its own.
func TestAWaitWhoseContextEndsWithTheLossOfAnotherLeaseSaysThatTheLockIsNotHeld(t *testing.T) {
	for name, cause := range map[string]error{"cancelled": nil, "another lease is lost": zksync.ErrLost, "another session is closed": zksync.ErrClosed} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				m := zksync.NewMutex(v.Session(), proving.LockPath)
				c := zkcond.New(m, proving.CondPath)
				l := v.Lock(m)
				short, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				l, err := c.WaitContext(short, l) // makes the directory
				require.ErrorIs(t, err, context.DeadlineExceeded)
				v.Server.Intercept(zktest.On(zktest.Create, proving.CondPath+"/*").Times(1).DelayReply(time.Second))
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
				l, err = c.WaitContext(ctx, l)
				require.ErrorIs(t, err, context.Canceled)
				require.Nil(t, l)
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
				v.Later()
			})
		})
	}
}
