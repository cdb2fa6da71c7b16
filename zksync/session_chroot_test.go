package zksync_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

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
	require.Regexp(t, `^/locks/a/_c_`, l.Path())
	zktest.WaitChildren(t, srv, "/team/app/locks/a", 1)

	list, err := zksync.NewMutex(other, "/locks/a").Contenders(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, l.Path(), list[0].Node)
	require.NoError(t, zksync.Verify(t.Context(), other, "/locks/a", l.Token()))

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = zksync.NewMutex(other, "/locks/a").LockContext(ctx)
	require.EqualError(t, err, "zksync: lock /locks/a: context deadline exceeded")

	res, err := l.Guard(&zk.CreateRequest{Path: "/data-", Flags: zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll)})
	require.NoError(t, err)
	require.Equal(t, "/data-0000000001", res[0].String)
	_, made := srv.Node("/team/app/data-0000000001")
	require.True(t, made)

	_, err = l.Guard(&zk.SetDataRequest{Path: "/data-0000000001", Version: 7})
	require.EqualError(t, err, "zksync: guarded set /data-0000000001: zk: version conflict")

	// The client connection below knows nothing of chroots.
	_, _, err = s.Conn().Get("/data-0000000001")
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, _, err = s.Conn().Get("/team/app/data-0000000001")
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
}
