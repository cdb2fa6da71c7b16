package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The caller's time is up: the command has said that it ends in time, whatever the servers do.
func TestACloserWithoutTimeSpendsNoMoreThanItHas(t *testing.T) {
	const has = 250 * time.Millisecond
	silences := map[string]func(srv *zktest.Server, id int64) (heal func()){
		"frozen":          func(srv *zktest.Server, _ int64) func() { return srv.Freeze() },
		"partitioned":     func(srv *zktest.Server, id int64) func() { return srv.Partition(id) },
		"no answers":      func(srv *zktest.Server, id int64) func() { return srv.DropReplies(id) },
		"nothing is sent": func(srv *zktest.Server, id int64) func() { return srv.DropRequests(id) },
		"disconnected": func(srv *zktest.Server, id int64) func() {
			allow := srv.Refuse()
			srv.Disconnect(id)
			return allow
		},
	}
	for name, silence := range silences {
		for _, held := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					defer time.Sleep(time.Second) // the client library may still wait for an answer
					srv := zktest.Run(t, zktest.WithLeftovers())
					s := srv.Session(t, zksync.WithTimeout(20*time.Second))
					if held {
						zksync.NewMutex(s, "/locks/a").Lock()
					}
					heal := silence(srv, s.ID())
					defer heal()
					start := time.Now()
					require.NoError(t, (*session.Session)(s).CloseWithin(has))
					require.Equal(t, has, time.Since(start))
					require.Equal(t, zksync.Closed, s.State())
					require.NoError(t, s.Close(), "once more")
					require.Equal(t, has, time.Since(start))
				})
			})
		}
	}
}

func TestACloserWithoutTimeEndsTheSessionWhereTheServersAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		zksync.NewMutex(s, "/locks/a").Lock()
		start := time.Now()
		require.NoError(t, (*session.Session)(s).CloseWithin(250*time.Millisecond))
		require.Less(t, time.Since(start), 50*time.Millisecond)
		require.Empty(t, srv.Sessions())
	})
}

// A session was lost, and the attempt to end it on the servers gets no answer.
func TestACloserWithoutTimeDoesNotWaitForASessionOfThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Second) // as above
		srv := zktest.Run(t, zktest.WithLeftovers())
		s := srv.Session(t, zksync.WithTimeout(20*time.Second), zksync.WithLeaseFraction(0.3))
		defer srv.DropReplies(s.ID())()
		changes := s.Changes(t.Context())
		allow := srv.Refuse()
		srv.Disconnect(s.ID())
		for st := range changes {
			if st == zksync.Lost {
				allow()
			}
			if st == zksync.Connected {
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		require.NoError(t, (*session.Session)(s).CloseWithin(250*time.Millisecond))
		require.Equal(t, 250*time.Millisecond, time.Since(start))
	})
}
