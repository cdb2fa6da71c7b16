package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// An Unlock in the context of another lock, which is unlocked meanwhile. That does not say that the hold has ended.
func TestAnUnlockDoesNotTakeTheEndOfAnotherLeaseForTheEndOfItsHold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		h, err := zkdurable.NewMutex(s, "/d").Lock(t.Context(), "a")
		require.NoError(t, err)
		other, err := zksync.NewMutex(s, "/other").LockContext(t.Context())
		require.NoError(t, err)
		held := v.Server.Intercept(zktest.On(zktest.Multi, "/d/**").Of(s.ID()).Hold().Nth(1))
		time.AfterFunc(time.Second, func() { _ = other.Unlock() })
		err = h.Unlock(other.Context())
		require.Equal(t, 1, held.Held())
		require.NoError(t, h.Err(), "the hold lasts")
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, zksync.Ambiguous(err), err)
		held.Release()
		v.Awaits(h.Done(), "the session carries it out")
	})
}
