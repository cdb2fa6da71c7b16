package zksync_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// What the user sees never shows the chroot; what is on the servers always has it.
func TestPathsOfASessionAreBelowItsChrootAndNeverShowIt(t *testing.T) {
	srv := zktest.Run(t)
	open := func() *zksync.Session {
		s, err := zksync.Connect(t.Context(), srv.Addr()+"/team/app")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	s, other := open(), open()
	m := zksync.NewMutex(s, "/locks/a")
	l, err := m.LockContext(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^/locks/a/_c_`, l.Node())
	zktest.WaitChildren(t, srv, "/team/app/locks/a", 1)

	list, err := zksync.NewMutex(other, "/locks/a").Contenders(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, l.Node(), list[0].Node)
	require.NoError(t, zksync.Verify(t.Context(), other, "/locks/a", l.Token()))

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = zksync.NewMutex(other, "/locks/a").LockContext(ctx)
	require.Regexp(t, `^zksync: lock /locks/a: context deadline exceeded: 1st in line, held by [^/]+ for 0s$`, err.Error())

	res, err := l.Guard(t.Context(), &zk.CreateRequest{Path: "/data-", Flags: zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll)})
	require.NoError(t, err)
	require.Equal(t, "/data-0000000001", res[0].String)
	_, made := srv.Node("/team/app/data-0000000001")
	require.True(t, made)

	_, err = l.Guard(t.Context(), &zk.SetDataRequest{Path: "/data-0000000001", Version: 7})
	require.EqualError(t, err, "zksync: guarded set /data-0000000001: zk: version conflict")

	// The client connection below knows nothing of chroots.
	_, _, err = s.Conn().Get("/data-0000000001")
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, _, err = s.Conn().Get("/team/app/data-0000000001")
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
}

// chrooted opens a session below /ap.
func chrooted(t *testing.T, srv *zktest.Server, opts ...zksync.SessionOption) (*zksync.Session, error) {
	s, err := zksync.Connect(t.Context(), "zk1/ap", append(opts, zksync.WithDialer(srv.DialContext))...)
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func TestAChrootThatTheSessionMakesIsOneWarning(t *testing.T) {
	const warning = `level=WARN msg="created the chroot, which did not exist" path=/ap`
	for name, use := range map[string]func(t *testing.T, s *zksync.Session){
		"a lock": func(t *testing.T, s *zksync.Session) {
			for i := range 3 {
				m := zksync.NewMutex(s, fmt.Sprintf("/locks/%d", i))
				m.Lock()
				m.Unlock()
			}
		},
		"a number, in a transaction": func(t *testing.T, s *zksync.Session) {
			for i := range 3 {
				_, err := zkatomic.NewInt64(s, fmt.Sprintf("/n/%d", i)).Add(t.Context(), 1)
				require.NoError(t, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				b := &logbook{}
				s, err := chrooted(t, srv, zksync.WithLogger(b.logger(slog.LevelInfo)))
				require.NoError(t, err)
				require.Empty(t, b.take())
				use(t, s)
				require.Equal(t, []string{warning}, b.take())
				srv.DeleteAll("/ap") // as the servers do with a container that is empty
				use(t, s)
				require.Empty(t, b.take(), "once")
				other, err := chrooted(t, srv, zksync.WithLogger(b.logger(slog.LevelInfo)))
				require.NoError(t, err)
				use(t, other)
				require.Empty(t, b.take(), "it exists")
			})
		})
	}
}

func TestAnExistingChrootIsWantedAndNeverMade(t *testing.T) {
	const missing = "the chroot /ap does not exist, and WithExistingChroot is given: correct the connect string, or create /ap: misuse"
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithLeftovers())
		_, err := chrooted(t, srv, zksync.WithExistingChroot())
		require.EqualError(t, err, "zksync: connect zk1/ap: "+missing)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, made := srv.Node("/ap")
		require.False(t, made)

		srv.Load(map[string]string{"/ap": ""})
		before := srv.Requests()
		s, err := chrooted(t, srv, zksync.WithExistingChroot())
		require.NoError(t, err)
		require.Equal(t, 2, srv.Requests()-before)
		before = srv.Requests()
		_, err = chrooted(t, srv)
		require.NoError(t, err)
		require.Zero(t, srv.Requests()-before)
		m := zksync.NewMutex(s, "/l")
		m.Lock()
		m.Unlock()
		n := zkatomic.NewInt64(s, "/n")
		_, err = n.Add(t.Context(), 1)
		require.NoError(t, err)

		srv.DeleteAll("/ap")
		_, err = m.LockContext(t.Context())
		require.EqualError(t, err, "zksync: lock /l: "+missing)
		_, err = zkatomic.NewInt64(s, "/other").Add(t.Context(), 1)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, made = srv.Node("/ap")
		require.False(t, made)
	})
	_, err := zksync.Connect(t.Context(), "zk1", zksync.WithExistingChroot())
	require.ErrorIs(t, err, zksync.ErrMisuse)
	require.ErrorContains(t, err, "no chroot")
}
