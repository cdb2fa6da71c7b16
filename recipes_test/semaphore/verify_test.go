package semaphore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance116VerifyKnowsTheTokensOfASemaphore(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 3)
		s := v.Session()
		first := v.Granted(want(context.Background(), w[0], 2))
		second := v.Granted(want(context.Background(), w[1], 1))
		v.Verified(nil, s, proving.SemPath, first.Token())
		v.Verified(nil, s, proving.SemPath, second.Token())
		third := want(context.Background(), w[0], 1)
		v.Settled(proving.SemQueue, 3)
		v.Flush()
		list, err := w[1].Contenders(context.Background())
		require.NoError(t, err)
		v.Verified(zksync.ErrStale, s, proving.SemPath, list[2].Token) // it waits
		require.NoError(t, first.Unlock())
		v.Verified(zksync.ErrStale, s, proving.SemPath, first.Token())
		v.Verified(nil, s, proving.SemPath, second.Token())
		l := v.Granted(third)
		v.Verified(nil, s, proving.SemPath, l.Token())
		require.NoError(t, l.Unlock())
		require.NoError(t, second.Unlock())
		v.Verified(zksync.ErrStale, s, proving.SemPath, second.Token())
	})
}

func TestVerifyKnowsAHoldFromBeforeThereWereFewerPermits(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 2, 3)
		s := v.Session()
		l := v.Granted(want(context.Background(), w[0], 3))
		require.NoError(t, w[1].Resize(context.Background(), 1))
		v.Verified(nil, s, proving.SemPath, l.Token())
		require.NoError(t, l.Unlock())
		v.Verified(zksync.ErrStale, s, proving.SemPath, l.Token())
	})
}

// The node of a hold that was given back in part is a new one, and the token is the old one's.
func TestVerifyKnowsTheRestOfAHold(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		w := sems(v, 1, 3)[0]
		s := v.Session()
		require.NoError(t, w.Acquire(context.Background(), 3))
		list, err := w.Contenders(context.Background())
		require.NoError(t, err)
		before := list[0]
		w.Release(1)
		v.Settled(proving.SemQueue, 1)
		list, err = w.Contenders(context.Background())
		require.NoError(t, err)
		require.NotEqual(t, before.Node, list[0].Node)
		require.Equal(t, before.Token, list[0].Token)
		v.Verified(nil, s, proving.SemPath, before.Token)
		w.Release(2)
		v.Left(proving.SemQueue, 0, "released")
		v.Verified(zksync.ErrStale, s, proving.SemPath, before.Token)
	})
}

func TestVerifyAsksASyncAListingAndOneReadForEachHolder(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		s := proving.Calm(v)
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		v.Costs(3, func() {
			require.NoError(t, zksync.Verify(context.Background(), s, proving.LockPath, l.Token()))
		})
		require.NoError(t, l.Unlock())

		w := zksemaphore.NewWeighted(s, proving.SemPath, 2)
		first := v.Granted(want(context.Background(), w, 1))
		second := v.Granted(want(context.Background(), w, 1))
		v.Costs(6, func() { v.Verified(nil, s, proving.SemPath, second.Token()) }, "a second listing, and the number of permits")
		require.NoError(t, first.Unlock())
		require.NoError(t, second.Unlock())
	})
}
