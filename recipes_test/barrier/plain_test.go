package barrier_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Two goroutines of one barrier arrive at once, and each asks for the write that neither may do.
func TestTwoGoroutinesOfABarrierLearnAtOnceThatTheyMayNotWrite(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		acl := append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)...)
		ann := v.Session(zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithACL(acl...))
		a := zkbarrier.NewBarrier(ann, proving.BarrierPath, 3)
		b := zkbarrier.NewBarrier(v.Session(zksync.WithACL(acl...)), proving.BarrierPath, 3)
		require.NoError(t, a.Reset(ctx))
		held := v.Server.Intercept(zktest.On(zktest.SetData, proving.BarrierPath+"/**").Nth(1).Hold())
		var all []*proving.Attempt
		for _, barrier := range []*zkbarrier.Barrier{b, b, a} {
			all = append(all, proving.Waits(ctx, func(ctx context.Context) error { _, err := barrier.Await(ctx); return err }))
			v.Quiet()
			if len(all) == 2 {
				held.Remove()
				held.Release()
				v.Quiet()
			}
		}
		for _, one := range all {
			v.Passes(one)
		}
	})
}
