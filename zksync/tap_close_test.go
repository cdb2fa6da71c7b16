package zksync_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// tapped returns a session on a connection of the test's own, and the paths of n locks that it holds.
func tapped(t *testing.T, srv *zktest.Server, n int) (*zk.Conn, *zksync.Session, []string) {
	t.Helper()
	conn := srv.Connect(t, 40*time.Second)
	s, err := zksync.Tap(t.Context(), conn)
	require.NoError(t, err)
	var paths []string
	for i := range n {
		paths = append(paths, fmt.Sprintf("/locks/%d", i))
		_, err := zksync.NewMutex(s, paths[i]).LockContext(t.Context())
		require.NoError(t, err)
	}
	return conn, s, paths
}

func TestCloseOfATappedSessionReleasesAllItsLocksTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, s, paths := tapped(t, srv, 20)
		srv.Delay(conn.SessionID(), 0, 300*time.Millisecond)
		start := time.Now()
		require.NoError(t, s.Close())
		require.Less(t, time.Since(start), time.Second)
		for _, p := range paths {
			zktest.CheckChildren(t, srv, p)
		}
	})
}

func TestCloseOfATappedSessionReleasesWhateverItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, s, _ := tapped(t, srv, 0)
		rw := zkrwmutex.New(s, "/locks/rw")
		for range 2 {
			_, err := rw.RLockContext(t.Context())
			require.NoError(t, err)
		}
		_, err := zksemaphore.NewWeighted(s, "/locks/sem", 5).AcquireLease(t.Context(), 2)
		require.NoError(t, err)
		m := zksync.NewMutex(s, "/locks/m")
		m.Lock()
		waiting := make(chan error)
		go func() {
			_, err := m.LockContext(context.Background())
			waiting <- err
		}()
		synctest.Wait()
		start := time.Now()
		require.NoError(t, s.Close())
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, <-waiting, zksync.ErrClosed)
		for _, ss := range srv.Sessions() {
			require.Empty(t, ss.Ephemerals)
		}
		require.NotPanics(t, m.Unlock)
	})
}

func TestCloseOfATappedSessionTakesTwoSecondsAtMostHoweverMuchItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, s, paths := tapped(t, srv, 8)
		thaw := srv.Freeze()
		start := time.Now()
		require.NoError(t, s.Close())
		require.Equal(t, 2*time.Second, time.Since(start))
		thaw()
		for _, p := range paths {
			zktest.WaitChildren(t, srv, p, 0)
		}
		require.Less(t, time.Since(start), 3*time.Second)
	})
}

// The connection lives on, and nothing but us would ever remove the nodes.
func TestWhatATappedSessionCouldNotRemoveGoesAsSoonAsItsConnectionAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn, s, paths := tapped(t, srv, 3)
		id := conn.SessionID()
		next := make(chan *zksync.Lease)
		m := zksync.NewMutex(srv.Session(t, zksync.WithTimeout(time.Minute)), paths[0])
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			l, err := m.LockContext(ctx)
			assert.NoError(t, err)
			next <- l
		}()
		zktest.WaitChildren(t, srv, paths[0], 2)
		allow := srv.Refuse()
		srv.Disconnect(id)
		require.NoError(t, s.Close())
		time.Sleep(10 * time.Second)
		allow()
		healed := time.Now()
		l := <-next
		require.NotNil(t, l)
		require.LessOrEqual(t, time.Since(healed), 3*time.Second, "the client itself pauses for a second between attempts")
		require.NoError(t, l.Unlock())
		for _, p := range paths {
			zktest.WaitChildren(t, srv, p, 0)
		}
		require.LessOrEqual(t, time.Since(healed), 3*time.Second)
		require.Equal(t, id, conn.SessionID(), "it is not that its session ended")
	})
}

func TestTapGivesUpWithItsContextAlthoughTheServerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 40*time.Second)
		thaw := srv.Freeze()
		defer thaw()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := zksync.Tap(ctx, conn)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(start), 1100*time.Millisecond)
	})
}
