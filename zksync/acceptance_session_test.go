package zksync_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// listen collects the changes that one listener sees.
func listen(ctx context.Context, s *zksync.Session) func() []zksync.State {
	changes := s.Changes(ctx) // from here on nothing is missed
	var mu sync.Mutex
	var seen []zksync.State
	go func() {
		for st := range changes {
			mu.Lock()
			seen = append(seen, st)
			mu.Unlock()
		}
	}()
	return func() []zksync.State {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return append([]zksync.State(nil), seen...)
	}
}

func TestAcceptance108EveryListenerSeesEveryChangeOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(4*time.Second))
		all := make([]func() []zksync.State, 20)
		for i := range all {
			all[i] = listen(t.Context(), s)
		}
		// Others come and go meanwhile.
		churn, stop := context.WithCancel(t.Context())
		go func() {
			for churn.Err() == nil {
				ctx, cancel := context.WithTimeout(churn, 3*time.Millisecond)
				for range s.Changes(ctx) {
				}
				cancel()
			}
		}()
		srv.Disconnect(s.ID())
		time.Sleep(time.Second)
		srv.Expire(s.ID())
		time.Sleep(time.Second)
		heal := srv.Partition(s.ID())
		time.Sleep(10 * time.Second)
		heal()
		time.Sleep(10 * time.Second)
		stop()
		require.NoError(t, s.Close())
		want := []zksync.State{
			zksync.Suspended, zksync.Connected, // a disconnect
			zksync.Suspended, zksync.Lost, zksync.Connected, // an expiry
			zksync.Suspended, zksync.Lost, zksync.Connected, // a partition
			zksync.Closed,
		}
		for _, seen := range all {
			require.Equal(t, want, seen())
		}
	})
}

func TestAcceptance109ASessionThatNeverConnectsIsNotReportedLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		allow := srv.Refuse()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(30*time.Minute, allow)
		start := time.Now()
		s, err := zksync.Connect(ctx, "zk1", zksync.WithDialer(srv.DialContext), zksync.WithTimeout(time.Second))
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(start), 30*time.Minute)
		require.Less(t, time.Since(start), 30*time.Minute+time.Second)
		require.Equal(t, zksync.Connected, s.State())
		require.NoError(t, s.Close())
	})
}

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

func TestAcceptance137DigestACLsKeepStrangersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		acl := zksync.WithACL(zk.DigestACL(zk.PermAll, "ann", "secret")...)
		own := srv.Session(t, zksync.WithAuth("digest", []byte("ann:secret")), acl)
		stranger := srv.Session(t)
		liar := srv.Session(t, zksync.WithAuth("digest", []byte("ann:guess")))
		m := zksync.NewMutex(own, "/vault/lock")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)

		for _, s := range []*zksync.Session{stranger, liar} {
			_, err = zksync.Contenders(t.Context(), s, "/vault/lock")
			require.ErrorIs(t, err, zk.ErrNoAuth, "see")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			start := time.Now()
			_, err = zksync.NewMutex(s, "/vault/lock").LockContext(ctx)
			require.ErrorIs(t, err, zk.ErrNoAuth, "take")
			require.ErrorContains(t, err, "WithAuth")
			require.Zero(t, time.Since(start), "an error, not a hang")
			cancel()
			require.ErrorIs(t, s.Conn().Delete(l.Path(), -1), zk.ErrNoAuth, "delete")
		}
		require.NoError(t, l.Err())

		srv.Disconnect(own.ID())
		require.NoError(t, l.Unlock())
		l, err = m.LockContext(t.Context())
		require.NoError(t, err, "the reconnect restored the credentials")
		require.NoError(t, l.Unlock())
		zktest.CheckChildren(t, srv, "/vault/lock")
	})
}

func TestAcceptance137ASchemeThatTheServersDoNotKnowIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, err := zksync.Connect(t.Context(), "zk1", zksync.WithDialer(srv.DialContext), zksync.WithAuth("kerberos", []byte("x")))
		require.ErrorContains(t, err, "credentials")
	})
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

var pathTable = []struct {
	path string
	ok   bool
}{
	{"", false}, {"a", false}, {"/", false}, {"/a/", false}, {"/a//b", false}, {"/a/../b", false}, {"/a/./b", false},
	{"/a\x00b", false}, {"/a\x1fb", false}, {"/" + strings.Repeat("x", 1<<20), false}, {"/zookeeper/x", false},
	{"/grün/锁/ключ", true}, {"/emoji/\U0001f512", false}, {"/bad\xffutf8", false},
	{"/a b/c.d/e-f_g", true}, {"/..a/b..", true}, {"/" + strings.Repeat("y", 1000), true},
}

func TestAcceptance139EveryPathIsRefusedClearlyOrWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		for _, row := range pathTable {
			m := zksync.NewMutex(s, row.path)
			l, err := m.LockContext(t.Context())
			_, listing := m.Contenders(t.Context())
			if row.ok {
				require.NoError(t, err, "%q", row.path)
				require.NoError(t, listing)
				require.NoError(t, l.Unlock())
				require.True(t, m.TryLock())
				m.Unlock()
				continue
			}
			require.ErrorIs(t, err, zksync.ErrMisuse, "%.40q", row.path)
			require.ErrorIs(t, listing, zksync.ErrMisuse)
			require.Less(t, len(err.Error()), 500)
			require.Panics(t, m.Lock)
			require.Panics(t, func() { m.TryLock() })
		}
	})
}
