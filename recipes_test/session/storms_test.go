package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// lockFor locks a mutex with a context of d, and returns the error.
func lockFor(s *zksync.Session, path string, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	l, err := zksync.NewMutex(s, path).LockContext(ctx)
	if err == nil {
		err = l.Unlock()
	}
	return err
}

// Everything but a create works in each of these sessions.
func TestSessionsThatEndAtEachCreateAreNotManyInAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		before := srv.RequestsBy(zktest.Connect)
		refused := srv.SetError(zktest.CodeSessionExpired, zktest.Create)
		require.ErrorIs(t, lockFor(s, "/l", time.Minute), context.DeadlineExceeded)
		require.Less(t, srv.RequestsBy(zktest.Connect)-before, 40)
		require.Greater(t, srv.RequestsBy(zktest.Connect)-before, 10)
		refused()
		require.NoError(t, lockFor(s, "/l", 10*time.Second), "it goes on when the servers do")
	})
}

func TestAServerThatAnswersAndThenHangsUpIsNotDialledInATightLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		before := srv.TotalConnections()
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-time.After(5 * time.Millisecond):
					srv.Disconnect(s.ID())
				case <-stop:
					return
				}
			}
		}()
		for start := time.Now(); time.Since(start) < time.Minute; {
			_ = lockFor(s, "/l", time.Second)
			time.Sleep(time.Millisecond)
		}
		close(stop)
		require.Less(t, srv.TotalConnections()-before, 60*5, "at most about three a second")
		require.NoError(t, lockFor(s, "/l", 10*time.Second))
	})
}

func TestALostConnectionThatWorkedIsReplacedAtOnce(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for range 3 {
			require.NoError(t, lockFor(s, "/l", v.Patience()))
			start := time.Now()
			v.Disconnect(s)
			require.NoError(t, lockFor(s, "/l", v.Patience()))
			v.AtOnce(start, "reconnected")
		}
	})
}

// Such servers make the session, and then refuse every request and close the connection.
func TestServersThatDemandAuthenticationAreAClearErrorAndNoStorm(t *testing.T) {
	for _, op := range []zktest.Op{zktest.Any, zktest.Ping} {
		t.Run(op.String(), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				before := v.Goroutines()
				s := v.Session(zksync.WithTimeout(6 * time.Second))
				id, connections := s.ID(), v.Server.TotalConnections()
				rule := v.Server.Intercept(zktest.On(op, "**").Of(s.ID()).Error(zktest.CodeAuthDemanded))
				if op == zktest.Ping {
					time.Sleep(6 * time.Second)
				}
				start := time.Now()
				err := lockFor(s, "/l", time.Minute)
				require.ErrorIs(t, err, zksync.ErrMisuse)
				require.ErrorContains(t, err, "demands that clients authenticate")
				require.ErrorContains(t, err, "WithAuth")
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				v.AtOnce(start, "another attempt would not help")
				require.Equal(t, connections, v.Server.TotalConnections())
				require.ErrorIs(t, lockFor(s, "/l", time.Minute), zksync.ErrMisuse, "also later")
				require.NoError(t, s.Close())
				require.Less(t, time.Since(start), 100*time.Millisecond, "nothing to end")
				rule.Remove()
				v.Server.Expire(id)
				v.GoroutinesBack(before)
			})
		})
	}
}
