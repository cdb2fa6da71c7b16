package zksync_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A lease ends with the proof, which is older than the last answer (docs/guarantees/leases.md).
func TestALostLeaseSaysHowLongNoServerHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithTimeout(10*time.Second))
		m := zksync.NewMutex(s, "/l")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(20*time.Second + 300*time.Millisecond)
		heard := (*session.Session)(s).Client().Current().Heard()
		heal := srv.Partition(s.ID())
		<-l.Done()
		silent := time.Since(heard).Round(100 * time.Millisecond)
		require.Less(t, silent, 7*time.Second)
		lost := fmt.Sprintf("lease lost: no server answered for %v, with a session timeout of 10s", silent)
		require.EqualError(t, l.Err(), "zksync: "+lost)
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.Equal(t, l.Err(), context.Cause(l.Context()))
		require.EqualError(t, l.Unlock(), "zksync: unlock /l: "+lost)
		heal()
	})
}

func TestALostLeaseSaysThatTheServersHaveExpiredItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		l, err := zksync.NewMutex(s, "/l").LockContext(t.Context())
		require.NoError(t, err)
		srv.Expire(s.ID())
		<-l.Done()
		require.EqualError(t, l.Err(), "zksync: lease lost: zktest:2181 says that the session has expired")
	})
}
