package recipes_test

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// When the time of a wait is up it locks again, and its request is applied twice: then the server is slow to delete anything.
func TestAcceptance113AWaitWhoseSecondEntryIsMadeTwiceKeepsItsDeadline(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		m := zksync.NewMutex(v.session(), lockPath)
		c := zkcond.New(m, condPath)
		l, err := m.LockContext(context.Background())
		require.NoError(t, err)
		twice := v.srv.Intercept(zktest.On(zktest.Create, lockPath+"/*").Times(1).Delay(10 * time.Millisecond).Duplicate())
		v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Delete && path.Dir(q.Path) == lockPath {
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
		v.later()
		require.Empty(t, v.srv.Children(lockPath))
	})
}
