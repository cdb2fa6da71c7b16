package rwmutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The answer to a downgrade arrives in the very moment at which its context ends.
func TestADowngradeThatIsAnsweredWhenItsContextEndsLeavesNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := zkrwmutex.New(v.Session(), proving.LockPath, zksync.WithHandover(100))
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && len(q.Ops) == 3 {
				return zktest.Verdict{Delay: 5 * time.Millisecond}
			}
			return zktest.Verdict{}
		})
		for i := range 1000 {
			l, err := rw.LockContext(context.Background())
			require.NoError(t, err)
			next := proving.Call(context.Background(), rw.LockContext) // of this process
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			r, err := rw.Downgrade(ctx, l)
			cancel()
			if err == nil {
				require.NoError(t, r.Unlock())
			}
			n := v.Granted(next)
			if n.Valid() && !v.Exists(n.Node()) {
				t.Fatalf("round %d: %v is valid and its node is gone", i, n.Token())
			}
			_ = n.Unlock()
			if left := v.Children(proving.LockPath); len(left) > 0 {
				t.Fatalf("round %d: %v (%v)", i, left, err)
			}
		}
	})
}
