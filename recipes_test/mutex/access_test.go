package mutex_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance137DigestACLsKeepStrangersOut(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		if !v.Virtual { // whoever tidies up needs the key
			require.NoError(t, v.Admin.Conn().AddAuth("digest", []byte("ann:secret")))
		}
		const vault = "/vault/lock"
		acl := zksync.WithACL(zk.DigestACL(zk.PermAll, "ann", "secret")...)
		own := v.Session(zksync.WithAuth("digest", []byte("ann:secret")), acl)
		m := zksync.NewMutex(own, vault)
		l := v.Lock(m)
		for _, s := range []*zksync.Session{v.Session(), v.Session(zksync.WithAuth("digest", []byte("ann:guess")))} {
			_, err := zksync.Contenders(t.Context(), s, vault)
			require.ErrorIs(t, err, zk.ErrNoAuth, "see")
			ctx, cancel := context.WithTimeout(t.Context(), v.Patience())
			start := time.Now()
			_, err = zksync.NewMutex(s, vault).LockContext(ctx)
			cancel()
			require.ErrorIs(t, err, zk.ErrNoAuth, "take")
			require.ErrorContains(t, err, "WithAuth")
			v.AtOnce(start, "an error, not a hang")
			require.ErrorIs(t, s.Conn().Delete(v.Chroot+l.Node(), -1), zk.ErrNoAuth, "delete")
		}
		require.NoError(t, l.Err())

		v.Disconnect(own)
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Lock(m).Unlock(), "the reconnect restored the credentials")
		v.Queued(vault, 0)
	})
}

func TestAcceptance137ASchemeThatTheServersDoNotKnowIsAnErrorAtOnce(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithTimeout(t.Context(), v.Patience())
		defer cancel()
		start := time.Now()
		_, err := v.Connect(ctx, zksync.WithAuth("kerberos", []byte("x")))
		require.ErrorContains(t, err, "credentials")
		require.ErrorContains(t, err, `: the servers refuse the credentials: the servers do not know the scheme "kerberos", or refuse what was presented for it`)
		v.Within(start, time.Second, "an error, not a hang")
	})
}

// pathTable is every kind of path, and whether it works.
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
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for _, row := range pathTable {
			m := zksync.NewMutex(s, row.path)
			l, err := m.LockContext(t.Context())
			_, listing := m.Contenders(t.Context())
			if row.ok {
				require.NoError(t, err, "%.40q", row.path)
				require.NoError(t, listing)
				require.Len(t, v.Children(row.path), 1)
				require.NoError(t, l.Unlock())
				v.Left(row.path, 0, "unlocked")
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
