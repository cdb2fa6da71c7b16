package latch_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// annWrites lets all count and open, but only ann write to a node.
var annWrites = append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)...)

// One opens who may not write to the base node; another, who may, comes a moment later.
func TestAnOpenerOfALatchComesAfterOneWhoMayNotWrite(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		ann := v.Session(zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithACL(annWrites...))
		bob := v.Session(zksync.WithACL(annWrites...))
		la, lb := zklatch.New(ann, proving.LatchPath, 2), zklatch.New(bob, proving.LatchPath, 2)
		w := proving.Waits(ctx, zklatch.New(bob, proving.LatchPath, 2).Wait)
		v.Quiet()
		// ann counts the last but is slow to open
		opening := v.Server.Intercept(zktest.On(zktest.Delete, proving.LatchPath+"/closed-of-2").Of(ann.ID()).Hold())
		require.NoError(t, lb.CountDown(ctx))
		a := proving.Waits(ctx, la.CountDown)
		require.NoError(t, opening.WaitHeld(ctx))
		require.NoError(t, lb.CountDown(ctx)) // opens, by deleting only
		v.Passes(w)
		opening.Remove()
		opening.Release()
		<-a.Done
		require.NoError(t, a.Err)
	})
}

// A waiter opens for the dead last counter, and so does somebody who may not write.
func TestAWaiterOpensALatchAfterOneWhoMayNotWrite(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		ann := v.Session(zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithACL(annWrites...))
		bob := v.Session(zksync.WithACL(annWrites...))
		la, lb := zklatch.New(ann, proving.LatchPath, 1), zklatch.New(bob, proving.LatchPath, 1)
		wa, wb := proving.Waits(ctx, la.Wait), proving.Waits(ctx, lb.Wait)
		v.Quiet()
		v.Put(proving.LatchPath+"/counts/_c_x-count", "") // its process died
		opening := v.Server.Intercept(zktest.On(zktest.Delete, proving.LatchPath+"/closed-of-1").Of(ann.ID()).Hold())
		require.NoError(t, opening.WaitHeld(ctx))
		<-wb.Done
		require.NoError(t, wb.Err)
		opening.Remove()
		opening.Release()
		<-wa.Done
		require.NoError(t, wa.Err)
	})
}

// Two goroutines of one latch find out at once that they may not write to the node.
func TestTwoGoroutinesOfALatchLearnAtOnceThatTheyMayNotWrite(t *testing.T) {
	for name, node := range map[string]string{"to the counts": "/counts", "to the base node": ""} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx := context.Background()
				l := zklatch.New(v.Session(zksync.WithACL(annWrites...)), proving.LatchPath, 5)
				require.NoError(t, l.CountDown(ctx))
				if node == "" { // both count the last, and open
					ann := v.Session(zksync.WithAuth("digest", []byte("ann:secret")))
					_, err := ann.Conn().SetACL(proving.LatchPath+"/counts", zk.WorldACL(zk.PermAll), -1)
					require.NoError(t, err)
					for range 3 {
						require.NoError(t, l.CountDown(ctx))
					}
				}
				l = zklatch.New(v.Session(zksync.WithACL(annWrites...)), proving.LatchPath, 5) // has learned nothing
				held := v.Server.Intercept(zktest.On(zktest.SetData, proving.LatchPath+node).Times(2).Hold())
				both := []*proving.Attempt{proving.Waits(ctx, l.CountDown), proving.Waits(ctx, l.CountDown)}
				v.Quiet()
				held.Remove()
				held.Release()
				for _, a := range both {
					<-a.Done
					require.NoError(t, a.Err)
				}
			})
		})
	}
}
