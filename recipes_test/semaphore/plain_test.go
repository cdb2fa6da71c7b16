package semaphore_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Two goroutines of one semaphore come at once, and each asks for the write that neither may do.
func TestTwoGoroutinesOfASemaphoreLearnAtOnceThatTheyMayNotWrite(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		acl := append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)...)
		ann := v.Session(zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithACL(acl...))
		l, err := zksemaphore.NewWeighted(ann, "/sem/a", 3).AcquireLease(ctx, 1)
		require.NoError(t, err)
		l.Unlock()
		both := zksemaphore.NewWeighted(v.Session(zksync.WithACL(acl...)), "/sem/a", 3)
		held := v.Server.Intercept(zktest.On(zktest.SetData, "/sem/**").Nth(1).Hold())
		var all []*proving.Attempt
		for range 2 {
			all = append(all, proving.Waits(ctx, func(ctx context.Context) error { return both.Acquire(ctx, 1) }))
		}
		v.Quiet()
		require.Equal(t, 1, held.Held(), "the other one waits behind it")
		held.Remove()
		held.Release()
		for _, one := range all {
			v.Passes(one)
		}
	})
}
