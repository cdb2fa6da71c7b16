package cond_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

// The cost: a wait is one request to give the lock up and three to wait, of which those who are not
// first need two; a signal is three, none of which depends on how many wait.
func TestAcceptance115WhatConditionsCost(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		calmSide := func() *side {
			m := zksync.NewMutex(proving.Calm(v), proving.LockPath)
			return &side{m: m, c: zkcond.New(m, proving.CondPath)}
		}
		v.Put(proving.CondPath, "")
		other := calmSide()
		held := v.Lock(other.m)
		v.Costs(1+1, func() { require.NoError(t, other.c.SignalContext(context.Background(), held)) }, "the first look at the path; nobody waits")
		require.NoError(t, held.Unlock())
		var as []*proving.Attempt
		for i, want := range []int{1 + 4, 1 + 3, 1 + 3} { // the first look at the path
			w := calmSide()
			l := v.Lock(w.m)
			v.Costs(want, func() {
				as = append(as, proving.Call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return w.c.WaitContext(ctx, l) }))
				v.Queued(proving.CondPath, i+1)
			}, "waiter %d", i)
		}
		held = v.Lock(other.m)
		// Three for the signal; the one it wakes reads it, queues for the lock, and watches.
		v.Costs(3+1+3, func() { require.NoError(t, other.c.SignalContext(context.Background(), held)) })
		// Unlock, then the signal is used up; the next waiter lists, watches, and reads.
		v.Costs(1+1+3, func() {
			require.NoError(t, held.Unlock())
			v.Granted(as[0])
		})
		require.NoError(t, as[0].Lease.Unlock())
		held = v.Lock(other.m)
		require.NoError(t, other.c.BroadcastContext(context.Background(), held))
		require.NoError(t, held.Unlock())
		require.NoError(t, v.Granted(as[1]).Unlock())
		require.NoError(t, v.Granted(as[2]).Unlock())
	})
}
