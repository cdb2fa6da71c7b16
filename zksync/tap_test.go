package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestATappedConnectionLocksAndStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 3*time.Second)
		s, err := zksync.Tap(t.Context(), conn)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, s.Timeout())
		require.Equal(t, conn.SessionID(), s.ID())
		own := zksync.NewMutex(s, "/locks/a")
		other := zksync.NewMutex(srv.Session(t), "/locks/a")

		held, err := own.LockContext(t.Context())
		require.NoError(t, err)
		require.False(t, other.TryLock())
		got := make(chan *zksync.Lease)
		go func() {
			l, err := other.LockContext(context.Background())
			require.NoError(t, err)
			got <- l
		}()
		zktest.WaitChildren(t, srv, "/locks/a", 2)
		require.NoError(t, held.Unlock())
		next := <-got
		require.Positive(t, next.Token().Compare(held.Token()))

		go func() {
			l, err := own.LockContext(context.Background())
			require.NoError(t, err)
			got <- l
		}()
		zktest.WaitChildren(t, srv, "/locks/a", 2)
		require.NoError(t, next.Unlock())
		last := <-got
		require.Positive(t, last.Token().Compare(next.Token()))

		require.NoError(t, s.Close())
		require.ErrorIs(t, last.Err(), zksync.ErrReleased)
		zktest.CheckChildren(t, srv, "/locks/a")
		_, _, err = conn.Exists("/locks")
		require.NoError(t, err, "the connection is the caller's")
	})
}

func TestATappedConnectionIsToldOfLossInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 3*time.Second)
		s, err := zksync.Tap(t.Context(), conn)
		require.NoError(t, err)
		defer s.Close()
		l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		expired := make(chan time.Time, 1)
		srv.OnSessionExpired(func(id int64, at time.Time) { expired <- at })
		heal := srv.Partition(conn.SessionID())
		<-l.Done()
		lost := time.Now()
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		at := <-expired
		require.True(t, lost.Before(at), "lost at %v, expired at %v", lost, at)
		heal()

		again, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
		require.NoError(t, err, "the next session of the same connection")
		require.Positive(t, again.Token().Compare(l.Token()))
		require.NoError(t, again.Unlock())
	})
}

func TestATappedConnectionWhoseSessionSurvivedTheLossLeavesNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 3*time.Second)
		s, err := zksync.Tap(t.Context(), conn, zksync.WithLeaseFraction(0.5))
		require.NoError(t, err)
		defer s.Close()
		m := zksync.NewMutex(s, "/locks/a")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		heal := srv.Partition(conn.SessionID())
		<-l.Done()
		heal()
		again, err := m.LockContext(t.Context())
		require.NoError(t, err)
		require.Len(t, srv.Children("/locks/a"), 1, "the lost lease's node is gone although its session lives")
		require.NoError(t, again.Unlock())
	})
}
