package zkprom_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// states are the gauges of states, by state, without zeros.
func states(t *testing.T, c *zkprom.Collector) series {
	t.Helper()
	all := make(series)
	for _, state := range []string{"connected", "suspended", "lost", "closed"} {
		n, ok := exposed(t, c, "session_state")[`session_state{state="`+state+`"}`]
		require.True(t, ok, state)
		if n != 0 {
			all[state] = n
		}
	}
	return all
}

func TestTheStatesOfASession(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, srv *zktest.Server, s *zksync.Session) {
		sum := func() series { return exposed(t, c, "reconnects", "sessions_total") }
		require.Equal(t, series{"connected": 1}, states(t, c))
		require.Equal(t, series{"reconnects_total": 0, "sessions_total": 1}, sum())
		allow := srv.Refuse()
		srv.Disconnect(s.ID())
		require.Equal(t, series{"suspended": 1}, states(t, c))
		allow()
		time.Sleep(time.Second)
		require.Equal(t, series{"connected": 1}, states(t, c))
		require.Equal(t, series{"reconnects_total": 1, "sessions_total": 1}, sum())
		allow = srv.Refuse()
		srv.Disconnect(s.ID())
		time.Sleep(20 * time.Second)
		require.Equal(t, series{"lost": 1}, states(t, c))
		require.Equal(t, 0.0, exposed(t, c, "lease_remaining")["lease_remaining_seconds"])
		allow()
		time.Sleep(20 * time.Second)
		require.Equal(t, series{"connected": 1}, states(t, c))
		require.Equal(t, series{"reconnects_total": 1, "sessions_total": 2}, sum())
		require.NoError(t, s.Close())
		require.Equal(t, series{"closed": 1}, states(t, c))
		require.Empty(t, exposed(t, c, "lease_remaining", "session_timeout"))
	})
}

func TestSeveralSessionsShareACollector(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, srv *zktest.Server, first *zksync.Session) {
		second := srv.Session(t, zksync.WithTracer(c), zksync.WithTimeout(30*time.Second))
		require.Equal(t, series{"connected": 2}, states(t, c))
		require.Equal(t, 15.0, exposed(t, c, "session_timeout")["session_timeout_seconds"])
		left := func() float64 { return exposed(t, c, "lease_remaining")["lease_remaining_seconds"] }
		require.Equal(t, time.Until(first.Expires()).Seconds(), left())
		require.Less(t, left(), 15.0)

		a, err := zksync.NewMutex(first, "/locks/a", zksync.WithName("a")).LockContext(t.Context())
		require.NoError(t, err)
		begin := time.Now()
		time.Sleep(time.Second)
		go func() {
			_, err := zksync.NewMutex(second, "/locks/a", zksync.WithName("a")).LockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrClosed)
		}()
		require.Equal(t, series{`held{kind="lock",name="a"}`: 1, `waiting{kind="lock",name="a"}`: 1, `held_since_seconds{kind="lock",name="a"}`: unix(begin)}, now(t, c))

		defer srv.Refuse()()
		srv.Disconnect(second.ID())
		require.Equal(t, series{"connected": 1, "suspended": 1}, states(t, c))
		time.Sleep(23 * time.Second)
		require.Equal(t, time.Until(second.Expires()).Seconds(), left())
		require.Less(t, left(), time.Until(first.Expires()).Seconds())
		require.NoError(t, second.Close())
		require.NoError(t, a.Unlock())
		time.Sleep(time.Minute) // until the servers have ended the session of second, too
		require.Equal(t, series{"connected": 1}, states(t, c), "closed sessions are forgotten")
		require.Equal(t, 15.0, exposed(t, c, "session_timeout")["session_timeout_seconds"])
	})
}

// What every request reports is what the server has seen.
func TestEveryRequestIsCounted(t *testing.T) {
	c := zkprom.New()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithHeartbeat("")) // it counts heartbeats, too
		s := srv.Session(t, zksync.WithTracer(c))
		srv.Delay(s.ID(), 20*time.Millisecond, 0)
		before := exposed(t, c, "request")
		for range 3 {
			l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
			require.NoError(t, err)
			time.Sleep(20 * time.Second) // heartbeats of a hold
			require.NoError(t, l.Unlock())
		}
		time.Sleep(time.Minute) // pings
		got := exposed(t, c, "request")
		var sum float64
		for op, of := range map[string]zktest.Op{
			"auth": zktest.SetAuth, "create": zktest.Create, "delete": zktest.Delete, "get_data": zktest.GetData, "multi": zktest.Multi,
			"ping": zktest.Ping, "sync": zktest.Sync,
		} {
			n := got[`requests_total{op="`+op+`"}`]
			require.Equal(t, float64(srv.RequestsOf(s.ID(), of)), n, op)
			sum += n - before[`requests_total{op="`+op+`"}`]
		}
		require.Equal(t, sum, got["request_seconds_count"]-before["request_seconds_count"])
		require.InDelta(t, sum*0.02, got["request_seconds_sum"]-before["request_seconds_sum"], 1e-9)
	})
}

// The alert of a lease that is about to end fires below 0.15 of the session timeout.
func TestAHealthyLeaseHasAFifthOfTheSessionTimeoutLeft(t *testing.T) {
	for _, p := range []struct {
		timeout, trip time.Duration
		fraction      float64
	}{{4, 0, 1}, {6, 200, 1}, {10, 0, 1}, {10, 200, 1}, {15, 200, 1}, {15, 200, 0.5}} {
		c := zkprom.New()
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			timeout := p.timeout * time.Second
			s := srv.Session(t, zksync.WithTracer(c), zksync.WithTimeout(timeout), zksync.WithLeaseFraction(p.fraction))
			srv.Delay(s.ID(), p.trip*time.Millisecond/2, p.trip*time.Millisecond/2)
			for _, path := range []string{"/locks/a", "/locks/b"} {
				for range 150 { // before a lease, and while it is held
					time.Sleep(177 * time.Millisecond)
					got := exposed(t, c, "lease_remaining", "session_timeout")
					require.Equal(t, timeout.Seconds(), got["session_timeout_seconds"])
					require.Greater(t, got["lease_remaining_seconds"], timeout.Seconds()/5, p)
				}
				l, err := zksync.NewMutex(s, path).LockContext(t.Context())
				require.NoError(t, err)
				defer l.Unlock()
			}
		})
	}
}
