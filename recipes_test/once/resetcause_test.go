package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The context of a Reset ends with the zk.ErrNoNode of another goroutine of its errgroup. That does not say that the result is gone.
func TestAResetDoesNotTakeTheCauseOfItsContextForTheAnswer(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		o := onces(v, 1)[0]
		o.Do(func() {})
		held := v.Server.Intercept(zktest.On(zktest.Multi, onceResult).Hold().Nth(1))
		g, ctx := errgroup.WithContext(t.Context())
		g.Go(func() error { time.Sleep(time.Second); return zk.ErrNoNode })
		err := o.Reset(ctx)
		_ = g.Wait()
		require.Equal(t, 1, held.Held())
		require.True(t, v.Exists(onceResult))
		require.Error(t, err)
		require.True(t, zksync.Ambiguous(err), err)
		require.ErrorIs(t, err, zk.ErrNoNode, "the cause is there for the caller")
		held.Release()
	})
}

// A Reset in the context of another lock, which is unlocked meanwhile. The session is not closed, and the result may yet be removed.
func TestAResetDoesNotTakeTheEndOfAnotherLeaseForTheEndOfItsSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		o := zkonce.New(s, proving.OncePath)
		o.Do(func() {})
		other := v.Lock(zksync.NewMutex(s, proving.LockPath))
		held := v.Server.Intercept(zktest.On(zktest.Multi, onceResult).Hold().Nth(1))
		time.AfterFunc(time.Second, func() { _ = other.Unlock() })
		err := o.Reset(other.Context())
		require.Equal(t, 1, held.Held())
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, zksync.ErrClosed)
		require.True(t, zksync.Ambiguous(err), err)
		held.Release()
		v.Later()
		require.False(t, v.Exists(onceResult))
	})
}

// The session is closed while the answer to the write of the result is under way.
func TestAResultThatIsWrittenWhileTheSessionClosesIsNoCertainFailure(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && q.Paths[len(q.Paths)-1] == onceResult {
				return zktest.Verdict{DelayReply: 2 * time.Second}
			}
			return zktest.Verdict{}
		})
		time.AfterFunc(time.Second, func() { _ = s.Close() })
		_, err := zkonce.New(s, proving.OncePath).DoContext(t.Context(), func(context.Context) ([]byte, error) { return nil, nil })
		require.True(t, v.Exists(onceResult))
		require.ErrorIs(t, err, zksync.ErrClosed)
		require.True(t, zksync.Ambiguous(err), err)
	})
}

// The context of a Reset ends with the error of another call of this module.
func TestAResetWhoseContextEndsWithTheErrorOfAnotherCallSaysThatItsContextEnded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		o := zkonce.New(s, proving.OncePath)
		o.Do(func() {})
		v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		held := v.Server.Intercept(zktest.On(zktest.Multi, onceResult).Hold().Nth(1))
		g, ctx := errgroup.WithContext(t.Context())
		g.Go(func() error {
			time.Sleep(time.Second)
			_, err := zksync.NewMutex(v.Session(), proving.LockPath).TryLockContext(t.Context())
			return err
		})
		err := o.Reset(ctx)
		require.ErrorIs(t, g.Wait(), zksync.ErrNotAcquired)
		require.Equal(t, 1, held.Held())
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, zksync.Ambiguous(err), err)
		held.Release()
	})
}
