package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

// The cost: a wait is one request to give the lock up and three to wait, of which those who are not
// first need two; a signal is three, none of which depends on how many wait.
func TestAcceptance115WhatConditionsCost(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		calmSide := func() *side {
			m := zksync.NewMutex(calm(v), lockPath)
			return &side{m: m, c: zkcond.New(m, condPath)}
		}
		v.put(condPath, "")
		other := calmSide()
		held := v.lock(other.m)
		v.costs(1, func() { require.NoError(t, other.c.SignalContext(context.Background(), held)) }, "nobody waits")
		require.NoError(t, held.Unlock())
		var as []*attempt
		for i, want := range []int{4, 3, 3} {
			w := calmSide()
			l := v.lock(w.m)
			v.costs(want, func() {
				as = append(as, call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) }))
				v.queued(condPath, i+1)
			}, "waiter %d", i)
		}
		held = v.lock(other.m)
		// Three for the signal; the one it wakes reads it, queues for the lock, and watches.
		v.costs(3+1+3, func() { require.NoError(t, other.c.SignalContext(context.Background(), held)) })
		// Unlock, then the signal is used up; the next waiter lists, watches, and reads.
		v.costs(1+1+3, func() {
			require.NoError(t, held.Unlock())
			v.granted(as[0])
		})
		require.NoError(t, as[0].lease.Unlock())
		held = v.lock(other.m)
		require.NoError(t, other.c.BroadcastContext(context.Background(), held))
		require.NoError(t, held.Unlock())
		require.NoError(t, v.granted(as[1]).Unlock())
		require.NoError(t, v.granted(as[2]).Unlock())
	})
}
