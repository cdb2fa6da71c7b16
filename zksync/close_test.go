package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestCloseWithoutAConnectionEndsTheSessionIfAServerComesBackWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(time.Minute))
		l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		allow := srv.Refuse()
		srv.Disconnect(s.ID())
		time.AfterFunc(time.Second, allow)
		start := time.Now()
		require.NoError(t, s.Close())
		require.GreaterOrEqual(t, time.Since(start), time.Second)
		require.LessOrEqual(t, time.Since(start), 1500*time.Millisecond, "a pause between two attempts")
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		zktest.CheckChildren(t, srv, "/locks/a")
	})
}

func TestCloseWithoutAServerGivesUpAfterTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithLeftovers())
		s := srv.Session(t, zksync.WithTimeout(time.Minute))
		allow := srv.Refuse()
		defer allow()
		srv.Disconnect(s.ID())
		start := time.Now()
		require.NoError(t, s.Close())
		// The client library itself may need a second to notice.
		require.LessOrEqual(t, time.Since(start), 3*time.Second+50*time.Millisecond)
	})
}

func TestATryOfALockWhoseSessionWasClosedUnderItsHolderFailsWithErrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Run(t).Session(t)
		m := zksync.NewMutex(s, "/locks/a")
		m.Lock()
		require.NoError(t, s.Close())
		_, err := m.TryLockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrClosed)
		require.Panics(t, func() { m.TryLock() })
	})
}
