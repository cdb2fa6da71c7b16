package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestAPartitionedSessionExpiresAtTheFirstTickAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithTick(time.Second))
		conn := srv.Connect(t, 10*time.Second)
		_, err := conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		id := conn.SessionID()
		var expired time.Time
		srv.OnSessionExpired(func(got int64, at time.Time) {
			require.Equal(t, id, got)
			expired = at
		})
		start := time.Now()
		heal := srv.Partition(id)
		time.Sleep(10*time.Second + 999*time.Millisecond)
		require.True(t, expired.IsZero())
		srv.CheckNode(t, "/e", nil)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, 11*time.Second, expired.Sub(start))
		srv.CheckNoNode(t, "/e")
		heal()
		time.Sleep(20 * time.Second)
		require.NotEqual(t, id, conn.SessionID())
		require.Equal(t, zk.StateHasSession, conn.State())
	})
}

func TestALostReplyLeavesTheNodeBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 10*time.Second)
		srv.Create("/locks", nil, 0, 0)
		in := srv.Intercept(zktest.On(zktest.Create, "/locks/**").Nth(2).LoseReply())
		for i, want := range []error{nil, zk.ErrConnectionClosed, nil} {
			_, err := conn.Create("/locks/a-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
			require.Equal(t, want, err, "create %d", i)
		}
		require.Equal(t, 1, in.Fired())
		require.Len(t, srv.Children("/locks"), 3)
		require.Equal(t, 3, srv.Requests())
	})
}
