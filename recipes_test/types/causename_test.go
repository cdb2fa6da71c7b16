package types_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

// An errgroup ends the other calls with the error of the first that failed.
func TestACallWhoseContextEndsWithTheErrorOfAnotherNamesItself(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Lock(zksync.NewMutex(v.Session(), "/a"))
		_, other := zksync.NewMutex(s, "/a").TryLockContext(t.Context())
		require.ErrorIs(t, other, zksync.ErrNotAcquired)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(other)
		v.Lock(zksync.NewMutex(v.Session(), "/b"))
		_, locking := zksync.NewMutex(s, "/b").LockContext(ctx)
		_, _, loading := zkmap.New[string, int](s, "/m").Load(ctx, "k")
		for call, err := range map[string]error{"zksync: lock /b": locking, "zkmap: load /m": loading} {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			var e *zksync.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, call+": context canceled: zksync: try-lock /a: not acquired", err.Error())
			require.NotEqual(t, "/a", e.Path)
		}
	})
}
