package latch_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

// annWrites lets all make and delete nodes, but only ann write to one.
var annWrites = append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)...)

// A session that may not write to the nodes of a latch gets an error, and may wait for others, also if the last to count has died.
func TestWhoMayNotWriteToALatchMayWaitForIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		ann := v.Session(zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithACL(annWrites...))
		bob := v.Session(zksync.WithACL(annWrites...))
		la, lb := zklatch.New(ann, proving.LatchPath, 2), zklatch.New(bob, proving.LatchPath, 2)
		w := proving.Waits(ctx, lb.Wait)
		v.Quiet()
		require.ErrorIs(t, lb.CountDown(ctx), zk.ErrNoAuth)
		v.Remaining(lb, 2)
		v.Put(proving.LatchPath+"/counts/_c_x-count", "")
		v.Put(proving.LatchPath+"/counts/_c_y-count", "") // its process died
		time.Sleep(time.Minute)
		require.True(t, w.Pending(), "%v", w.Err)
		require.NoError(t, la.CountDown(ctx))
		v.Passes(w)
	})
}
