package phaser_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
)

// No phaser has such a number, and none would ever advance from it.
func TestAPhaseBeyondTheLastOneIsNotThatOfAPhaser(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p := phasers(v, 1)[0]
		v.Put(proving.PhaserPath, `{"phase":2147483648}`)
		_, err := p.Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

// Whoever cleans up removes the nodes one by one, in some order. That is no advance, and nobody waits for ever.
func TestAPhaserWhoseNodesAreRemovedByHandIsBroken(t *testing.T) {
	nodes := []string{"/wait-0", "/open", "/phase-1", "/phase-0", ""}
	for first := range nodes {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ps := phasers(v, 3)
			v.Gives(0, ps[0].Register)
			v.Gives(0, ps[1].Register)
			waits := []*phased{
				phase(context.Background(), ps[0].ArriveAndAwaitAdvance),
				phase(context.Background(), func(ctx context.Context) (int, error) { return ps[2].AwaitAdvance(ctx, 0) }),
			}
			v.Quiet()
			for i := range nodes {
				v.Server.DeleteAll(proving.PhaserPath + nodes[(first+i)%len(nodes)])
				if first < 2 {
					time.Sleep(time.Second)
				}
			}
			for _, w := range waits {
				require.ErrorIs(t, v.Failed(w.Attempt), zksync.ErrBroken)
			}
			for _, p := range ps[:2] {
				_, err := p.Arrive(context.Background())
				require.ErrorIs(t, err, zksync.ErrBroken)
			}
			v.Gives(0, ps[2].Register) // which makes a new phaser
		})
	}
}

// Somebody removes the node of the lock under which a waiter runs the function.
func TestAWaitGoesOnWhenTheLockOfItsFunctionIsRemovedByHand(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dying := v.Session()
		var runs atomic.Int32
		action := zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			if runs.Add(1) == 1 {
				v.Server.DeleteAll(proving.PhaserPath + "/action")
				time.Sleep(5 * time.Second)
			}
			return false
		})
		v.Gives(0, zkphaser.New(dying, proving.PhaserPath, action).Register)
		waits := phase(context.Background(), func(ctx context.Context) (int, error) {
			return phasers(v, 1, action)[0].AwaitAdvance(ctx, 0)
		})
		v.Quiet()
		v.Server.Expire(dying.ID())
		hasArrived(v, waits, 1)
		require.EqualValues(t, 2, runs.Load())
	})
}

func TestAPartyWhoseNodeIsRemovedByHandIsLost(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p, other := phasers(v, 1)[0], phasers(v, 1)[0]
		v.Gives(0, p.Register)
		removed := v.Server.Children(proving.PhaserPath + "/phase-0")[0]
		v.Gives(0, other.Register)
		v.Remove(proving.PhaserPath + "/phase-0/" + removed)
		_, err := p.Arrive(context.Background())
		require.ErrorIs(t, err, zksync.ErrLost)
		v.Gives(0, p.Register)
		v.Gives(0, p.Arrive)
		v.Gives(0, other.Arrive)
	})
}
