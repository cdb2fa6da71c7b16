package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Servers that give the same useless answer again and again are asked some ten times a second at most once
// it is clear that they do. A call that spins does not end in a bubble at all.
func TestServersThatAlwaysAnswerTheSameAreNotAskedInASpin(t *testing.T) {
	const noNode, badVersion = -101, -103
	calls := map[string]struct {
		op   zktest.Op
		code zktest.Code
		call func(ctx context.Context, s *zksync.Session) error
	}{
		"Lock: no such directory, though it was made": {zktest.Multi, noNode, func(ctx context.Context, s *zksync.Session) error {
			_, err := zksync.NewMutex(s, "/locks/a").LockContext(ctx)
			return err
		}},
		"TryLock: no such directory, though it was made": {zktest.Multi, noNode, func(ctx context.Context, s *zksync.Session) error {
			_, err := zksync.NewMutex(s, "/locks/a").TryLockContext(ctx)
			return err
		}},
		"Resize: the terms have changed": {zktest.Multi, badVersion, func(ctx context.Context, s *zksync.Session) error {
			return zksemaphore.NewWeighted(s, "/sem", 3).Resize(ctx, 4)
		}},
		"Acquire: the base node does not exist, though it was made": {zktest.GetData, noNode, func(ctx context.Context, s *zksync.Session) error {
			return zksemaphore.NewWeighted(s, "/sem", 3).Acquire(ctx, 1)
		}},
		"RLock: the own node is gone": {zktest.GetChildren, noNode, func(ctx context.Context, s *zksync.Session) error {
			_, err := zkrwmutex.New(s, "/writing").RLockContext(ctx)
			return err
		}},
	}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				_, err := zksync.NewMutex(srv.Session(t), "/busy").LockContext(t.Context())
				require.NoError(t, err)
				_, err = zkrwmutex.New(srv.Session(t), "/writing").LockContext(t.Context())
				require.NoError(t, err)
				s := srv.Session(t)
				clear := srv.SetError(c.code, c.op)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				before := srv.Requests()
				require.Error(t, c.call(ctx, s))
				require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, "it went on trying")
				require.Less(t, srv.Requests()-before, 100)
				clear()
			})
		})
	}
}

// The news that the base node is gone may come after the answer that it is.
func TestABaseNodeThatIsGoneBeforeThatIsToldIsMadeAnew(t *testing.T) {
	const noNode = -101
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		first := zksemaphore.NewWeighted(srv.Session(t), "/sem", 3)
		require.NoError(t, first.Acquire(t.Context(), 1))
		sem := zksemaphore.NewWeighted(srv.Session(t), "/sem", 3)
		srv.Intercept(zktest.On(zktest.GetData, "/sem").Error(noNode).Nth(2).Times(2)) // after the read that sets the watch
		free, err := sem.Available(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(2), free)

		// Now both know the number, so they read no more; the servers refuse what is made without the base node.
		srv.Intercept(zktest.On(zktest.Multi, "/sem/queue/*").Error(noNode).Times(2))
		require.NoError(t, sem.Acquire(t.Context(), 2))
		free, err = first.Available(t.Context())
		require.NoError(t, err)
		require.Zero(t, free)
	})
}
