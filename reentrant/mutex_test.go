package reentrant_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The behaviours with numbers are in the suites that also run on real servers.

const path = "/locks/legacy"

func inBubble(t *testing.T, f func(t *testing.T, srv *zktest.Server, m *reentrant.Mutex, other *zksync.Mutex)) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		m := reentrant.NewMutex(zksync.NewMutex(srv.Session(t), path))
		f(t, srv, m, zksync.NewMutex(srv.Session(t), path))
	})
}

func TestOwnersExcludeEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, m *reentrant.Mutex, _ *zksync.Mutex) {
		a, b := reentrant.WithOwner(t.Context()), reentrant.WithOwner(t.Context())
		l, err := m.LockContext(a)
		require.NoError(t, err)
		_, err = m.TryLockContext(b)
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.False(t, m.TryLock(), "this goroutine is a third")
		require.False(t, m.HeldByOwner(b))
		require.NoError(t, l.Unlock())
		l, err = m.TryLockContext(b)
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
	})
}

func TestAStrangersUnlockPanicsAndNamesBoth(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, m *reentrant.Mutex, _ *zksync.Mutex) {
		m.Lock()
		said := make(chan any)
		go func() {
			defer func() { said <- recover() }()
			m.Unlock()
		}()
		require.Regexp(t, `^reentrant: unlock by goroutine \d+ of a mutex that goroutine \d+ holds$`, <-said)
		m.Unlock()
		require.PanicsWithValue(t, "reentrant: unlock of unlocked mutex", m.Unlock)
	})
}

func TestDoIsNestedThroughItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, m *reentrant.Mutex, other *zksync.Mutex) {
		err := m.Do(t.Context(), func(ctx context.Context, outer *zksync.Lease) error {
			return m.Do(ctx, func(ctx context.Context, inner *zksync.Lease) error {
				require.Equal(t, outer.Token(), inner.Token())
				require.False(t, other.TryLock())
				return ctx.Err()
			})
		})
		require.NoError(t, err)
		zktest.CheckChildren(t, srv, path)
	})
}

func TestACancelledContextLocksNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, m *reentrant.Mutex, _ *zksync.Mutex) {
		ctx, cancel := context.WithCancel(reentrant.WithOwner(t.Context()))
		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		cancel()
		_, err = m.LockContext(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, l.Err(), "the context governed the waiting only")
		require.NoError(t, l.Unlock())
		zktest.CheckChildren(t, srv, path)
	})
}
