package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheTimeoutIsKnownBetweenALossAndTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(8*time.Second))
		allow := srv.Refuse()
		srv.Disconnect(s.ID())
		time.Sleep(time.Minute)
		require.Equal(t, zksync.Lost, s.State())
		require.Equal(t, 8*time.Second, s.Timeout())
		require.Zero(t, s.ID())
		allow()
		time.Sleep(time.Minute)
		require.Equal(t, zksync.Connected, s.State())
		require.Equal(t, 8*time.Second, s.Timeout())
	})
}
