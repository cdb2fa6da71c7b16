package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// verified checks what Verify says of a token.
func (v *env) verified(want error, s *zksync.Session, path string, token zksync.Token) {
	v.t.Helper()
	v.flush()
	require.ErrorIs(v.t, zksync.Verify(context.Background(), s, path, token), want)
}

func TestAcceptance116VerifyKnowsTheTokensOfASemaphore(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.sems(2, 3)
		s := v.session()
		first := v.granted(want(context.Background(), w[0], 2))
		second := v.granted(want(context.Background(), w[1], 1))
		v.verified(nil, s, semPath, first.Token())
		v.verified(nil, s, semPath, second.Token())
		third := want(context.Background(), w[0], 1)
		v.settled(semQueue, 3)
		list, err := w[1].Contenders(context.Background())
		require.NoError(t, err)
		v.verified(zksync.ErrStale, s, semPath, list[2].Token) // it waits
		require.NoError(t, first.Unlock())
		v.verified(zksync.ErrStale, s, semPath, first.Token())
		v.verified(nil, s, semPath, second.Token())
		l := v.granted(third)
		v.verified(nil, s, semPath, l.Token())
		require.NoError(t, l.Unlock())
		require.NoError(t, second.Unlock())
		v.verified(zksync.ErrStale, s, semPath, second.Token())
	})
}

func TestVerifyKnowsAHoldFromBeforeThereWereFewerPermits(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.sems(2, 3)
		s := v.session()
		l := v.granted(want(context.Background(), w[0], 3))
		require.NoError(t, w[1].Resize(context.Background(), 1))
		v.verified(nil, s, semPath, l.Token())
		require.NoError(t, l.Unlock())
		v.verified(zksync.ErrStale, s, semPath, l.Token())
	})
}

// The node of a hold that was given back in part is a new one, and the token is the old one's.
func TestVerifyKnowsTheRestOfAHold(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		w := v.sems(1, 3)[0]
		s := v.session()
		require.NoError(t, w.Acquire(context.Background(), 3))
		list, err := w.Contenders(context.Background())
		require.NoError(t, err)
		before := list[0]
		w.Release(1)
		v.settled(semQueue, 1)
		list, err = w.Contenders(context.Background())
		require.NoError(t, err)
		require.NotEqual(t, before.Node, list[0].Node)
		require.Equal(t, before.Token, list[0].Token)
		v.verified(nil, s, semPath, before.Token)
		w.Release(2)
		v.left(semQueue, 0, "released")
		v.verified(zksync.ErrStale, s, semPath, before.Token)
	})
}

func TestVerifyAsksASyncAListingAndOneReadForEachHolder(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		s := calm(v)
		l := v.lock(zksync.NewMutex(s, lockPath))
		v.costs(3, func() {
			require.NoError(t, zksync.Verify(context.Background(), s, lockPath, l.Token()))
		})
		require.NoError(t, l.Unlock())

		w := zksemaphore.NewWeighted(s, semPath, 2)
		first := v.granted(want(context.Background(), w, 1))
		second := v.granted(want(context.Background(), w, 1))
		v.costs(6, func() { v.verified(nil, s, semPath, second.Token()) }, "a second listing, and the number of permits")
		require.NoError(t, first.Unlock())
		require.NoError(t, second.Unlock())
	})
}
