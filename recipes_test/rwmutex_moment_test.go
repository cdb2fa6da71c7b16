package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The answer to a downgrade arrives in the very moment at which its context ends.
func TestADowngradeThatIsAnsweredWhenItsContextEndsLeavesNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		rw := zkrwmutex.New(v.session(), lockPath, zksync.WithHandover(100))
		v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && len(q.Ops) == 3 {
				return zktest.Verdict{Delay: 5 * time.Millisecond}
			}
			return zktest.Verdict{}
		})
		for i := range 1000 {
			l, err := rw.LockContext(context.Background())
			require.NoError(t, err)
			next := call(context.Background(), rw.LockContext) // of this process
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			r, err := rw.Downgrade(ctx, l)
			cancel()
			if err == nil {
				require.NoError(t, r.Unlock())
			}
			n := v.granted(next)
			if n.Valid() && !v.exists(n.Path()) {
				t.Fatalf("round %d: %v is valid and its node is gone", i, n.Token())
			}
			_ = n.Unlock()
			if left := v.children(lockPath); len(left) > 0 {
				t.Fatalf("round %d: %v (%v)", i, left, err)
			}
		}
	})
}
