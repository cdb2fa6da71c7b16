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

func TestAnUncontendedLockAndUnlockCostTwoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		m := zksync.NewMutex(s, "/locks/a")
		m.Lock() // makes the directories
		m.Unlock()
		before := srv.Requests()
		m.Lock()
		require.Equal(t, 1, srv.Requests()-before, "one request to the grant")
		m.Unlock()
		require.Equal(t, 2, srv.Requests()-before)
	})
}

func TestTwoSessionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		a := zksync.NewMutex(srv.Session(t), "/locks/a")
		b := zksync.NewMutex(srv.Session(t), "/locks/a")
		la, err := a.LockContext(context.Background())
		require.NoError(t, err)
		got := make(chan *zksync.Lease, 1)
		go func() {
			lb, err := b.LockContext(context.Background())
			require.NoError(t, err)
			got <- lb
		}()
		time.Sleep(time.Second)
		require.Empty(t, got)
		before := srv.Requests()
		require.NoError(t, la.Unlock())
		lb := <-got
		require.Equal(t, 1, srv.Requests()-before, "the release only")
		require.Positive(t, lb.Token().Compare(la.Token()))
		require.NoError(t, lb.Unlock())
		require.Empty(t, srv.Children("/locks/a"))
	})
}
