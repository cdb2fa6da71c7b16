package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestTheRequestsOfADurableLock(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		mutex := func() *zkdurable.Mutex { return zkdurable.NewMutex(proving.Calm(v), path) }
		a, b, c, d := mutex(), mutex(), mutex(), mutex()
		require.NoError(t, locks(v, a, "first").Unlock(ctx)) // makes the nodes

		var h *zkdurable.Hold
		v.Costs(3+1, func() { h = locks(v, a, "a") }, "three, and one to wait for the end of the hold")
		v.Costs(1, func() { require.NoError(t, h.SetNote(ctx, "x")) })
		v.Costs(1, func() { require.NoError(t, h.Unlock(ctx)) })
		v.Costs(2, func() { require.Zero(t, holder(v, a)) })

		h = locks(v, a, "a")
		v.Costs(3, func() { holder(v, b) })
		v.Costs(2, func() {
			_, err := b.TryLock(ctx, "b")
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
		})
		var w1, w2 *attempt
		v.Costs(3, func() { w1 = begins(ctx, b, "b"); v.Queued(base+"/queue", 1) }, "the state, the entry, a watch")
		v.Costs(4, func() { w2 = begins(ctx, c, "c"); v.Queued(base+"/queue", 2) }, "the state, and those of a mutex")
		v.Costs(1+2+1+3, func() { require.NoError(t, h.Unlock(ctx)); granted(v, w1) },
			"the unlock; the state and the grant; a watch of the hold; the next one in line finds that gone which it knew, reads the state, and watches")
		v.Costs(3+4+2+1, func() { require.NoError(t, d.Break(ctx, w1.hold.Token(), "")); granted(v, w2) },
			"the break; the holder asks what has become of its hold, and sees to its node; the next one as above")
		require.NoError(t, w2.hold.Unlock(ctx))

		s := proving.Calm(v)
		h = locks(v, zkdurable.NewMutex(s, path), "e")
		require.NoError(t, s.Close())
		v.Costs(4+1, func() {
			var err error
			h, err = d.Resume(ctx, "e")
			require.NoError(t, err)
		}, "four, and one to wait for the end of the hold")
		require.NoError(t, h.Unlock(ctx))
		v.Costs(6+1, func() {
			_, err := b.TryLock(ctx, "f")
			require.NoError(t, err)
		})
	})
}

func TestADurableLockLeavesNoGoroutineAndNoNode(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 2)
		require.NoError(t, locks(v, ms[0], "first").Unlock(ctx))
		before := v.Goroutines()
		h := locks(v, ms[0], "a")
		for range proving.Rounds(100) {
			limited, cancel := context.WithCancel(ctx)
			w := begins(limited, ms[1], "b")
			v.Queued(base+"/queue", 1)
			cancel()
			v.Failed(w.Attempt)
		}
		require.NoError(t, h.Unlock(ctx))
		for range proving.Rounds(100) {
			require.NoError(t, locks(v, ms[1], "b").Unlock(ctx))
		}
		v.NothingLeft(base + "/queue")
		v.GoroutinesBack(before)
	})
}
