package zkprom_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// unix is the time as held_since_seconds has it.
func unix(at time.Time) float64 { return float64(at.UnixNano()) / 1e9 }

// play runs f in virtual time, with a server, and a session that c traces.
func play(t *testing.T, c *zkprom.Collector, f func(t *testing.T, srv *zktest.Server, s *zksync.Session)) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		f(t, srv, srv.Session(t, zksync.WithTracer(c)))
	})
}

// now are the gauges of locks.
func now(t *testing.T, c *zkprom.Collector) series {
	t.Helper()
	return exposed(t, c, "held", "waiting")
}

// ends are the counts of waits and holds, and losses.
func ends(t *testing.T, c *zkprom.Collector) series {
	t.Helper()
	all := exposed(t, c, "acquire_wait_seconds_count", "acquire_wait_seconds_sum", "hold_seconds_count", "hold_seconds_sum", "losses")
	for k, v := range all {
		if v == 0 {
			delete(all, k)
		}
	}
	return all
}

func TestALockThatIsHandedOverInTheProcess(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
		m := zksync.NewMutex(s, "/locks/a", zksync.WithName("a"))
		require.Empty(t, now(t, c))
		first, err := m.LockContext(t.Context())
		require.NoError(t, err)
		begin := time.Now()
		require.Equal(t, series{`held{kind="lock",name="a"}`: 1, `waiting{kind="lock",name="a"}`: 0, `held_since_seconds{kind="lock",name="a"}`: unix(begin)}, now(t, c))

		time.Sleep(time.Second)
		second := make(chan *zksync.Lease)
		go func() {
			l, err := m.LockContext(t.Context())
			require.NoError(t, err)
			second <- l
		}()
		require.Equal(t, 1.0, now(t, c)[`waiting{kind="lock",name="a"}`])
		time.Sleep(2 * time.Second)
		require.NoError(t, first.Unlock())
		l := <-second
		require.Equal(t, series{`held{kind="lock",name="a"}`: 1, `waiting{kind="lock",name="a"}`: 0, `held_since_seconds{kind="lock",name="a"}`: unix(begin.Add(3 * time.Second))}, now(t, c))
		time.Sleep(5 * time.Second)
		require.NoError(t, l.Unlock())

		require.Equal(t, series{`held{kind="lock",name="a"}`: 0, `waiting{kind="lock",name="a"}`: 0}, now(t, c))
		require.Equal(t, series{
			`acquire_wait_seconds_count{kind="lock",name="a",outcome="granted"}`: 2, `acquire_wait_seconds_sum{kind="lock",name="a",outcome="granted"}`: 2,
			`hold_seconds_count{end="released",kind="lock",name="a"}`: 2, `hold_seconds_sum{end="released",kind="lock",name="a"}`: 8,
		}, ends(t, c))
		require.Equal(t, series{
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="0.001"}`: 1,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="0.003"}`: 1,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="0.01"}`:  1,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="0.03"}`:  1,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="0.1"}`:   1,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="0.3"}`:   1,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="1"}`:     1,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="3"}`:     2,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="10"}`:    2,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="30"}`:    2,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="100"}`:   2,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="300"}`:   2,
			`acquire_wait_seconds_bucket{kind="lock",name="a",outcome="granted",le="+Inf"}`:  2,
		}, exposed(t, c, "acquire_wait_seconds_bucket"))
	})
}

func TestALockThatIsLockedAgainWithoutARequest(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, srv *zktest.Server, s *zksync.Session) {
		m := zksync.NewMutex(s, "/locks/a", zksync.WithLinger(time.Minute))
		var sent int
		for i := range 3 {
			l, err := m.LockContext(t.Context())
			require.NoError(t, err)
			require.Equal(t, unix(time.Now()), now(t, c)[`held_since_seconds{kind="lock",name="other"}`])
			time.Sleep(time.Second)
			require.NoError(t, l.Unlock())
			require.Equal(t, series{`held{kind="lock",name="other"}`: 0, `waiting{kind="lock",name="other"}`: 0}, now(t, c), "a place that is kept is not held")
			if i == 0 {
				sent = srv.Requests()
			}
		}
		require.Less(t, srv.Requests()-sent, 3)
		require.Equal(t, series{
			`acquire_wait_seconds_count{kind="lock",name="other",outcome="granted"}`: 3,
			`hold_seconds_count{end="released",kind="lock",name="other"}`:            3, `hold_seconds_sum{end="released",kind="lock",name="other"}`: 3,
		}, ends(t, c))
	})
}

func TestTheOldestOfSeveralHoldsCounts(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
		begin := time.Now()
		var leases []*zksync.Lease
		for _, path := range []string{"/a", "/b", "/c"} {
			l, err := zksync.NewMutex(s, path).LockContext(t.Context())
			require.NoError(t, err)
			leases = append(leases, l)
			time.Sleep(time.Second)
		}
		for i, step := range []struct {
			ends int
			held float64
			at   time.Duration // of the oldest
		}{{1, 2, 0}, {0, 1, 2 * time.Second}, {2, 0, -1}} {
			require.NoError(t, leases[step.ends].Unlock())
			got := now(t, c)
			require.Equal(t, step.held, got[`held{kind="lock",name="other"}`], i)
			since, ok := got[`held_since_seconds{kind="lock",name="other"}`]
			if require.Equal(t, step.at >= 0, ok, i); ok {
				require.Equal(t, unix(begin.Add(step.at)), since, i)
			}
		}
	})
}

func TestAWaitThatEndsWithoutALease(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, srv *zktest.Server, s *zksync.Session) {
		other := srv.Session(t)
		held, err := zksync.NewMutex(other, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		m := zksync.NewMutex(s, "/locks/a", zksync.WithName("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		_, err = m.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = m.TryLockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.Equal(t, 0.0, now(t, c)[`waiting{kind="lock",name="a"}`])
		_, err = zksync.NewMutex(s, "no path", zksync.WithName("a")).LockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		go func() {
			_, err := m.LockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrClosed)
		}()
		require.Equal(t, 1.0, now(t, c)[`waiting{kind="lock",name="a"}`])
		time.Sleep(time.Second)
		require.NoError(t, s.Close())
		require.NoError(t, held.Unlock())
		require.Equal(t, series{`held{kind="lock",name="a"}`: 0, `waiting{kind="lock",name="a"}`: 0}, now(t, c))
		require.Equal(t, series{
			`acquire_wait_seconds_count{kind="lock",name="a",outcome="canceled"}`: 1, `acquire_wait_seconds_sum{kind="lock",name="a",outcome="canceled"}`: 7,
			`acquire_wait_seconds_count{kind="lock",name="a",outcome="not_acquired"}`: 1,
			`acquire_wait_seconds_count{kind="lock",name="a",outcome="error"}`:        2, `acquire_wait_seconds_sum{kind="lock",name="a",outcome="error"}`: 1,
		}, ends(t, c))
	})
}

func TestEachWayToLoseALease(t *testing.T) {
	for reason, end := range map[string]string{zksync.ReasonSession: "lost", zksync.ReasonRemoved: "lost", zksync.ReasonMaxHold: "max_hold"} {
		c := zkprom.New()
		play(t, c, func(t *testing.T, srv *zktest.Server, s *zksync.Session) {
			m := zksync.NewMutex(s, "/locks/a", zksync.WithName("a"), zksync.WithMaxHold(10*time.Second))
			l, err := m.LockContext(t.Context())
			require.NoError(t, err)
			<-time.After(5 * time.Second)
			held := 5.0
			switch reason {
			case zksync.ReasonSession:
				srv.Expire(s.ID())
			case zksync.ReasonRemoved:
				_ = l.Context() // watches the node
				synctest.Wait()
				srv.Delete(l.Node())
			case zksync.ReasonMaxHold:
				time.Sleep(5 * time.Second)
				held = 10
			}
			time.Sleep(2 * time.Second)
			require.Error(t, l.Unlock())
			require.Equal(t, series{`held{kind="lock",name="a"}`: 0, `waiting{kind="lock",name="a"}`: 0}, now(t, c), reason)
			require.Equal(t, series{
				`acquire_wait_seconds_count{kind="lock",name="a",outcome="granted"}`: 1,
				`hold_seconds_count{end="` + end + `",kind="lock",name="a"}`:         1, `hold_seconds_sum{end="` + end + `",kind="lock",name="a"}`: held,
				`losses_total{kind="lock",name="a",reason="` + reason + `"}`: 1,
			}, ends(t, c), reason)
		})
	}
}

// A lock of an owner is held once, however often it is locked.
func TestALockWithinALockIsOneHold(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
		m := reentrant.NewMutex(zksync.NewMutex(s, "/locks/a"))
		ctx := reentrant.WithOwner(t.Context())
		outer, err := m.LockContext(ctx)
		require.NoError(t, err)
		time.Sleep(time.Second)
		inner, err := m.LockContext(ctx)
		require.NoError(t, err)
		require.Equal(t, 1.0, now(t, c)[`held{kind="lock",name="other"}`])
		require.NoError(t, inner.Unlock())
		require.Equal(t, 1.0, now(t, c)[`held{kind="lock",name="other"}`])
		time.Sleep(time.Second)
		require.NoError(t, outer.Unlock())
		require.Equal(t, 0.0, now(t, c)[`held{kind="lock",name="other"}`])
		require.Equal(t, 2.0, ends(t, c)[`hold_seconds_sum{end="released",kind="lock",name="other"}`])
	})
}

// A writer that becomes a reader holds without a gap.
func TestADowngradeEndsOneHoldAndBeginsAnother(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
		rw := zkrwmutex.New(s, "/locks/a", zksync.WithName("a"))
		l, err := rw.LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		read, err := rw.Downgrade(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, series{
			`held{kind="write",name="a"}`: 0, `waiting{kind="write",name="a"}`: 0,
			`held{kind="read",name="a"}`: 1, `waiting{kind="read",name="a"}`: 0, `held_since_seconds{kind="read",name="a"}`: unix(time.Now()),
		}, now(t, c))
		time.Sleep(2 * time.Second)
		require.NoError(t, read.Unlock())
		require.Equal(t, 0.0, now(t, c)[`held{kind="read",name="a"}`])
		require.Equal(t, 1.0, ends(t, c)[`hold_seconds_sum{end="released",kind="write",name="a"}`])
		require.Equal(t, 2.0, ends(t, c)[`hold_seconds_sum{end="released",kind="read",name="a"}`])
	})
}

// A part of the permits that is released leaves a lease on the others.
func TestPermitsThatAreReleasedInPartsAreHeldUntilTheLast(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
		w := zksemaphore.NewWeighted(s, "/permits", 10, zksync.WithName("a"))
		require.NoError(t, w.Acquire(t.Context(), 5))
		for range 4 {
			time.Sleep(time.Second)
			w.Release(1)
			require.Equal(t, 1.0, now(t, c)[`held{kind="permit",name="a"}`])
		}
		w.Release(1)
		require.Equal(t, series{`held{kind="permit",name="a"}`: 0, `waiting{kind="permit",name="a"}`: 0}, now(t, c))
		require.Equal(t, 4.0, ends(t, c)[`hold_seconds_sum{end="released",kind="permit",name="a"}`])
	})
}

// A wait for a condition that the servers refuse ends with the lock held.
func TestARefusedWaitForAConditionHoldsOn(t *testing.T) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, srv *zktest.Server, s *zksync.Session) {
		m := zksync.NewMutex(s, "/locks/a", zksync.WithName("a"))
		cond := zkcond.New(m, "/cond")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		clear := srv.SetError(zktest.CodeNoAuth, zktest.Multi)
		next, err := cond.WaitContext(t.Context(), l)
		t.Log(err)
		require.Error(t, err)
		clear()
		require.Equal(t, 1.0, now(t, c)[`held{kind="lock",name="a"}`])
		require.NoError(t, next.Unlock())
		require.Equal(t, 0.0, now(t, c)[`held{kind="lock",name="a"}`])
	})
}
