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

func TestConnectThatGivesUpNamesTheServersAndTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		defer srv.Refuse()()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err := zksync.Connect(ctx, "zk1,zk2:2182/app", zksync.WithDialer(srv.DialContext))
		require.LessOrEqual(t, time.Since(start), 5*time.Second+10*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "zk1,zk2:2182/app")
		require.ErrorContains(t, err, "connection refused")
	})
}

// A bubble ends only when every goroutine that was started in it has ended.
func TestAcceptance110NoGoroutineRemainsAfterClose(t *testing.T) {
	for name, before := range map[string]func(srv *zktest.Server, s *zksync.Session) (undo func()){
		"connected": func(*zktest.Server, *zksync.Session) func() { return func() {} },
		"disconnected": func(srv *zktest.Server, s *zksync.Session) func() {
			undo := srv.Refuse()
			srv.Disconnect(s.ID())
			return undo
		},
		"in a handshake that hangs": func(srv *zktest.Server, s *zksync.Session) func() {
			undo := srv.Partition(s.ID())
			srv.Disconnect(s.ID())
			return undo
		},
		"expired": func(srv *zktest.Server, s *zksync.Session) func() { srv.Expire(s.ID()); return func() {} },
		"frozen":  func(srv *zktest.Server, _ *zksync.Session) func() { return srv.Freeze() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithLeftovers())
				s := srv.Session(t)
				m := zksync.NewMutex(s, "/locks/a")
				l, err := m.LockContext(t.Context())
				require.NoError(t, err)
				l.Done()
				waiting := make(chan error)
				go func() {
					_, err := m.LockContext(context.Background())
					waiting <- err
				}()
				synctest.Wait()
				undo := before(srv, s)
				defer undo()
				start := time.Now()
				require.NoError(t, s.Close())
				require.LessOrEqual(t, time.Since(start), 2*time.Second+100*time.Millisecond)
				require.ErrorIs(t, <-waiting, zksync.ErrClosed)
				require.Equal(t, zksync.Closed, s.State())
				_, err = m.LockContext(t.Context())
				require.ErrorIs(t, err, zksync.ErrClosed)
			})
		})
	}
}

func TestConnectRefusesADigestCredentialWithoutAColon(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel() // so that it fails at once, whatever it does
	_, err := zksync.Connect(ended, "zk1", zksync.WithAuth("digest", []byte("nocolon")))
	require.EqualError(t, err, "zksync: connect zk1: WithAuth: a credential of the scheme digest is user:password, and this one has no colon: misuse")
	require.ErrorIs(t, err, zksync.ErrMisuse)
}

func TestConnectFailsWithASchemeThatTheServersDoNotKnowHoweverLateTheySaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		srv.Intercept(zktest.On(zktest.SetAuth, "**").DelayReply(100 * time.Millisecond))
		start := time.Now()
		_, err := zksync.Connect(t.Context(), "zk1", zksync.WithDialer(srv.DialContext),
			zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithAuth("kerberos", []byte("x")))
		require.ErrorContains(t, err, `the servers do not know the scheme "kerberos"`)
		require.NotContains(t, err.Error(), "digest")
		require.NotContains(t, err.Error(), "-115")
		require.Less(t, time.Since(start), 300*time.Millisecond)
		require.Empty(t, srv.Sessions(), "nothing is left to expire")
	})
}
