package zksync_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAGuardWhoseContextHasEndedSendsNothing(t *testing.T) {
	srv := zktest.Run(t)
	l, err := zksync.NewMutex(srv.Session(t), "/a").LockContext(t.Context())
	require.NoError(t, err)
	defer l.Unlock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		_, err = l.Guard(ended, &zk.CreateRequest{Path: "/x", Acl: zk.WorldACL(zk.PermAll)})
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, zksync.Ambiguous(err))
	}
	zktest.CheckNoNode(t, srv, "/x")
	_, err = l.Guard(t.Context(), (*zk.CreateRequest)(nil))
	require.ErrorIs(t, err, zksync.ErrMisuse)
}

func TestTheStateOfALockIsReadFromItsJSON(t *testing.T) {
	srv := zktest.Run(t)
	m := zksync.NewMutex(srv.Session(t, zksync.WithName("web-3")), "/a")
	l, err := m.LockContext(t.Context())
	require.NoError(t, err)
	defer l.Unlock()
	st, err := m.State(t.Context())
	require.NoError(t, err)
	text, err := json.Marshal(st)
	require.NoError(t, err)
	var read zksync.MutexState
	require.NoError(t, json.Unmarshal(text, &read))
	st.Entries[0].Since = st.Entries[0].Since.UTC().Truncate(time.Second)
	require.Equal(t, st, read)
}

func TestTheStateOfALockRefusesWhatLocksRefuse(t *testing.T) {
	srv := zktest.Run(t)
	srv.Load(map[string]string{"/leaf": "data", "/map/zkmap": ""})
	s := srv.Session(t)
	for path, says := range map[string]string{"/leaf": "data that are not those of a zksync.Mutex", "/map": "not of a zksync.Mutex"} {
		_, err := zksync.NewMutex(s, path).State(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse, path)
		require.ErrorContains(t, err, says)
	}
}
