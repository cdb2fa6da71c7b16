package zkrate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// More busy processes than tokens in the burst take turns.
func TestAcceptance208MoreProcessesThanTokensTakeTurns(t *testing.T) {
	for _, c := range []struct{ n, burst int }{{6, 1}, {12, 5}} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			m, ls := newMeter(), limiters(v, c.n, 2, c.burst)
			each := map[*zkrate.Limiter]int{}
			for _, l := range ls {
				each[l] = 0
			}
			counts := make([]int, c.n)
			during(3*time.Minute, func(ctx context.Context, l *zkrate.Limiter) {
				n := 0
				for l.Wait(ctx) == nil {
					m.event()
					n++
				}
				for i := range ls {
					if ls[i] == l {
						counts[i] = n
					}
				}
			}, ls...)
			m.check(t, 2, c.burst)
			require.GreaterOrEqual(t, len(m.events), 324, "%v: nine tenths of the limit", c)
			for _, n := range counts {
				require.Greater(t, n, 360/c.n/3, "%v: %v", c, counts)
				require.Less(t, n, 360/c.n*2, "%v: %v", c, counts)
			}
		})
	}
}

// A call that needs the whole burst gets it from the others, who use all they have.
func TestAcceptance208AWaitForTheWholeBurstIsServed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, ls := newMeter(), limiters(v, 4, 20, 10)
		ctx, cancel := context.WithCancel(t.Context())
		for _, l := range ls[1:] {
			go m.busy(ctx, l)
		}
		time.Sleep(10 * time.Second)
		for range 5 {
			start := time.Now()
			require.NoError(t, ls[0].WaitN(t.Context(), 10))
			for range 10 {
				m.event()
			}
			require.Less(t, time.Since(start), 15*time.Second)
			time.Sleep(3 * time.Second)
		}
		cancel()
		m.check(t, 20, 10)
	})
}

func TestAcceptance209ANewcomerSoonHasAShare(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ls := limiters(v, 3, 100, 10)
		m := newMeter()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go m.busy(ctx, ls[0])
		time.Sleep(10 * time.Second)
		start := time.Now()
		require.NoError(t, ls[1].Wait(t.Context()))
		require.Less(t, time.Since(start), 100*time.Millisecond, "a busy process gives at once")
		require.NoError(t, ls[2].Wait(t.Context()))
		time.Sleep(5 * time.Second)
		start = time.Now()
		require.True(t, ls[1].Allow() || !ls[1].Allow())
		require.NoError(t, ls[1].Wait(t.Context()))
		require.Less(t, time.Since(start), 100*time.Millisecond)
	})
}

// lonely opens a session that cut keeps from the server, also in its next sessions.
func lonely(v *proving.Env) (s *zksync.Session, cut func() (heal func())) {
	var apart atomic.Bool
	s = v.Session(zksync.WithTimeout(10*time.Second), zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if apart.Load() {
			return nil, errors.New("no route to host")
		}
		return v.Server.DialContext(ctx, network, address)
	}))
	return s, func() func() {
		apart.Store(true)
		heal := v.Server.Partition(s.ID())
		return func() { apart.Store(false); heal() }
	}
}

// A process that is cut off goes on for what its lease lasts, and the others get its share when the servers have ended its session.
func TestAcceptance210TheShareOfALostSessionStaysSpentUntilItHasEnded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, apart := lonely(v)
		a, b := zkrate.New(s, path, 100, 20), zkrate.New(v.Session(), path, 100, 20)
		m, cut, other := newMeter(), newMeter(), newMeter()
		ctx, cancel := context.WithCancel(t.Context())
		use := func(l *zkrate.Limiter, own *meter) {
			for l.Wait(ctx) == nil {
				m.event()
				own.event()
			}
		}
		go use(a, cut)
		go use(b, other)
		time.Sleep(20 * time.Second)
		heal := apart()
		time.Sleep(30 * time.Second)
		require.InDelta(t, 50*5, cut.within(20*time.Second, 25*time.Second), 10, "no request is needed to go on")
		require.Zero(t, cut.within(29500*time.Millisecond, time.Minute), "the lease has ended")
		require.False(t, a.Allow())
		require.InDelta(t, 50*9, other.within(20*time.Second, 29*time.Second), 15, "the share stays spent")
		require.InDelta(t, 100*15, other.within(35*time.Second, 50*time.Second), 20, "until the session has ended")
		heal()
		time.Sleep(20 * time.Second)
		require.InDelta(t, 50*10, cut.within(60*time.Second, 70*time.Second), 25)
		cancel()
		m.check(t, 100, 20)
	})
}

func TestAcceptance210WithoutASessionNothingIsAllowed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for limit, path := range map[rate.Limit]string{10: "/rates/ten", rate.Inf: "/rates/all"} {
			s, cut := lonely(v)
			l := zkrate.New(s, path, limit, 5)
			require.True(t, l.Allow())
			heal := cut()
			time.Sleep(s.Timeout())
			start := time.Now()
			require.False(t, l.Allow())
			require.Zero(t, time.Since(start))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := l.Wait(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "zkrate: wait "+path)
			cancel()
			waits := proving.Waits(t.Context(), l.Wait)
			time.Sleep(time.Minute)
			require.True(t, waits.Pending())
			heal()
			v.Passes(waits)
			waits = proving.Waits(t.Context(), func(ctx context.Context) error {
				for {
					if err := l.WaitN(ctx, 5); err != nil || limit == rate.Inf {
						return err
					}
				}
			})
			require.NoError(t, s.Close())
			if limit != rate.Inf {
				require.ErrorIs(t, v.Failed(waits), zksync.ErrClosed)
			}
			require.ErrorIs(t, l.Wait(t.Context()), zksync.ErrClosed)
			require.False(t, l.Allow())
		}
	})
}

// Nothing costs a request but a change of the shares.
func TestAcceptance211Requests(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put("/rates", "")
		m, ls := newMeter(), limiters(v, 3, 100, 50)
		minute := func(ls ...*zkrate.Limiter) func() { return func() { during(time.Minute, m.busy, ls...) } }
		v.Costs(8, func() { require.True(t, ls[0].Allow()) }, "the first use of the path")
		v.Costs(0, func() { require.False(t, ls[0].AllowN(50)) }, "alone")
		v.Costs(0, minute(ls[0]), "busy alone")
		v.Costs(0, func() { time.Sleep(59 * time.Second) }, "idle")
		v.Costs(1, func() { time.Sleep(2 * time.Second) }, "it leaves")
		v.Costs(6, func() { require.True(t, ls[0].Allow()) }, "it joins again")
		v.CostsAtMost(34, minute(ls...), "three share") // 26 to 32 in 430 runs: the turns of the goroutines decide
		v.Costs(0, minute(ls...), "equally busy")
		v.CostsAtMost(31, minute(ls[0]), "two become idle, and have a token each")
		v.CostsAtMost(8, minute(ls[0]), "they leave, as they were not used for a minute")
		v.Costs(0, minute(ls[0]), "busy, beside those that have left")
		m.check(t, 100, 50)
	})
}

// One that calls rarely beside a busy one need not join again for each call.
func TestAProcessThatCallsRarelyIsServedAtOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, ls := newMeter(), limiters(v, 2, 100, 10)
		ctx, cancel := context.WithCancel(t.Context())
		go m.busy(ctx, ls[0])
		time.Sleep(10 * time.Second)
		require.NoError(t, ls[1].Wait(t.Context()))
		m.event()
		time.Sleep(30 * time.Second)
		for range 20 {
			v.CostsAtMost(6, func() {
				require.True(t, ls[1].Allow())
				m.event()
				time.Sleep(6 * time.Second)
			}, "a call")
		}
		cancel()
		m.check(t, 100, 10)
	})
}

func TestLimitsAreThoseOfXTime(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, n := v.Session(), 0
		at := func(limit rate.Limit, burst int) *zkrate.Limiter {
			n++
			return zkrate.New(s, fmt.Sprint("/rates/", n), limit, burst)
		}
		inf := at(rate.Inf, 0)
		for range 2 {
			require.True(t, inf.AllowN(1000000))
		}
		require.NoError(t, inf.WaitN(t.Context(), math.MaxInt))
		require.True(t, at(rate.Limit(math.Inf(1)), 0).Allow())

		never := at(0, 3)
		require.True(t, never.AllowN(3))
		require.False(t, never.Allow())
		time.Sleep(time.Hour)
		require.False(t, never.Allow(), "it stays spent when the process has left")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, never.Wait(ctx), context.DeadlineExceeded)

		none := at(10, 0)
		require.False(t, none.Allow())
		require.True(t, none.AllowN(0))
		require.ErrorIs(t, none.Wait(t.Context()), zksync.ErrMisuse)
		require.NoError(t, none.WaitN(t.Context(), 0))

		slow := at(0.1, 1)
		require.True(t, slow.Allow())
		start := time.Now()
		require.NoError(t, slow.Wait(t.Context()))
		require.InDelta(t, 10, time.Since(start).Seconds(), 1e-6)
		require.False(t, slow.AllowN(2))
		require.ErrorIs(t, slow.WaitN(t.Context(), 2), zksync.ErrMisuse)
		require.ErrorIs(t, slow.WaitN(t.Context(), -1), zksync.ErrMisuse)
		require.False(t, slow.AllowN(-1))

		for _, bad := range []*zkrate.Limiter{at(rate.Limit(math.NaN()), 1), at(-1, 1), at(1, -1), at(rate.Limit(math.Inf(-1)), 1), at(1, math.MaxInt)} {
			require.ErrorIs(t, bad.Wait(t.Context()), zksync.ErrMisuse)
			require.False(t, bad.Allow())
			require.False(t, bad.AllowN(0))
		}
	})
}

func TestCallsOfOneProcessAreServedInOrder(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := limiters(v, 1, 1, 5)[0]
		require.True(t, l.AllowN(5))
		start := time.Now()
		first := proving.Waits(t.Context(), func(ctx context.Context) error { return l.WaitN(ctx, 5) })
		v.Quiet()
		ctx, cancel := context.WithCancel(t.Context())
		second := proving.Waits(ctx, l.Wait)
		v.Quiet()
		third := proving.Waits(t.Context(), l.Wait)
		time.Sleep(4 * time.Second)
		require.False(t, l.Allow(), "the waiters come first")
		require.True(t, first.Pending() && second.Pending() && third.Pending())
		cancel()
		require.ErrorIs(t, v.Failed(second), context.Canceled)
		v.Passes(first)
		require.Equal(t, 5*time.Second, time.Since(start).Truncate(time.Millisecond))
		v.Passes(third)
		require.Equal(t, 6*time.Second, time.Since(start).Truncate(time.Millisecond))
	})
}

// Close gives the tokens back.
func TestAProcessThatClosesGivesItsTokensBack(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		require.True(t, zkrate.New(s, path, 0, 10).AllowN(4))
		require.NoError(t, s.Close())
		l := zkrate.New(v.Session(), path, 0, 10)
		require.True(t, l.AllowN(6))
		require.False(t, l.Allow())
		require.Len(t, v.Children(path+"/zkrate/processes"), 1)
	})
}

// After an external removal a process begins again, with an empty bucket.
func TestAfterAnExternalRemovalTheLimitHolds(t *testing.T) {
	for _, what := range []string{"zkrate", "zkrate/shares", "zkrate/processes", "", "process"} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			m, ls := newMeter(), limiters(v, 2, 10, 20)
			ctx, cancel := context.WithCancel(t.Context())
			use := func(l *zkrate.Limiter) {
				for ctx.Err() == nil {
					if err := l.Wait(ctx); err == nil {
						m.event()
					} else if errors.Is(err, zksync.ErrBroken) {
						time.Sleep(time.Second)
					}
				}
			}
			go use(ls[0])
			go use(ls[1])
			time.Sleep(30 * time.Second)
			removed := path + "/" + what
			if what == "process" {
				removed = path + "/zkrate/processes/" + v.Children(path + "/zkrate/processes")[0]
			}
			v.Server.DeleteAll(strings.TrimSuffix(removed, "/"))
			time.Sleep(30 * time.Second)
			v.Server.DeleteAll(path + "/zkrate")
			time.Sleep(30 * time.Second)
			cancel()
			m.check(t, 10, 20)
			require.Greater(t, m.within(80*time.Second, 90*time.Second), 90, what)
		})
	}
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := limiters(v, 1, 10, 20)[0]
		require.True(t, l.Allow())
		for _, garbage := range []string{"x", "{}", `{"shares":null}`, `{"shares":{"a":null}}`, `{"shares":{"a":{"rate":-1}}}`, `{"level":-1,"shares":{}}`,
			`{"shares":{"a":{"burst":20000},"b":{"burst":1}}}`, `{"shares":{"a":{"rate":1000000000},"b":{"rate":1}}}`} {
			v.Server.Set(path+"/zkrate/shares", []byte(garbage))
			time.Sleep(5 * time.Second)
			err := l.Wait(t.Context())
			require.ErrorIs(t, err, zksync.ErrBroken, garbage)
			require.ErrorContains(t, err, "menagerie reset")
			require.False(t, l.Allow())
		}
	})
}

func TestARecordThatLacksANodeIsBroken(t *testing.T) {
	for _, lacks := range []string{"shares", "processes"} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			l := limiters(v, 1, 10, 5)[0]
			require.True(t, l.Allow())
			v.Server.DeleteAll(path + "/zkrate/" + lacks)
			time.Sleep(5 * time.Second)
			err := l.Wait(t.Context())
			require.ErrorIs(t, err, zksync.ErrBroken)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "menagerie reset")
			v.Server.DeleteAll(path + "/zkrate")
			time.Sleep(time.Second)
			require.NoError(t, l.Wait(t.Context()))
			require.Len(t, v.Children(path+"/zkrate/processes"), 1)
		})
	}
}

func TestAfterAResetAnotherLimitIsAccepted(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		require.True(t, zkrate.New(s, path, 10, 5).Allow())
		l := zkrate.New(v.Session(), path, 11, 5)
		require.ErrorIs(t, l.Wait(t.Context()), zksync.ErrMisuse)
		require.NoError(t, s.Close())
		v.Server.DeleteAll(path)
		time.Sleep(time.Second)
		require.NoError(t, l.Wait(t.Context()))
	})
}

// What a process had before its servers refused a write is not spent as long as its session lives.
func TestAfterARefusalAProcessKeepsOneShare(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, ls := newMeter(), limiters(v, 2, 10, 20)
		during(10*time.Second, m.busy, ls...)
		calm := v.Server.Intercept(zktest.On(zktest.Multi, path+"/zkrate/shares").Error(zktest.CodeNoAuth))
		during(20*time.Second, m.busy, ls[0])
		calm.Remove()
		time.Sleep(time.Second)
		during(20*time.Second, m.busy, ls...)
		require.Len(t, v.Children(path+"/zkrate/processes"), 2)
		m.check(t, 10, 20)
		require.GreaterOrEqual(t, m.within(41*time.Second, 51*time.Second), 95)
	})
}

func TestServersThatRefuse(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := limiters(v, 1, 10, 5)[0]
		calm := v.Server.Intercept(zktest.On(zktest.Multi, path+"*").Error(zktest.CodeNoAuth))
		require.ErrorContains(t, l.Wait(t.Context()), "zkrate: wait "+path)
		require.False(t, l.Allow())
		before := v.Requests()
		for range 1000 {
			require.False(t, l.Allow())
		}
		require.Equal(t, before, v.Requests())
		calm.Remove()
		time.Sleep(time.Second)
		require.NoError(t, l.Wait(t.Context()))
	})
}

// Many processes begin at once: a share is not taken for that of a dead process because its node was not in an earlier list.
func TestAcceptance207ManyProcessesThatBeginAtOnceKeepTheLimit(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, ls := newMeter(), limiters(v, 25, 200, 10)
		during(5*time.Second, m.busy, ls...)
		m.check(t, 200, 10)
	})
}

// The event of a new process does not reach another one, which has read the new share by then.
func TestAcceptance207AListOlderThanTheRecordBuriesNoProcess(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, a, b := newMeter(), v.Session(), v.Session()
		ctx, cancel := context.WithCancel(t.Context())
		go m.busy(ctx, zkrate.New(a, path, 100, 10))
		time.Sleep(10 * time.Second)
		v.Server.Intercept(zktest.On(zktest.EventChildrenChanged, path+"/zkrate/processes").Of(a.ID()).Lose())
		second := newMeter()
		go second.busy(ctx, zkrate.New(b, path, 100, 10))
		synctest.Wait()
		joined := v.Children(path + "/zkrate/processes")
		require.Len(t, joined, 2)
		time.Sleep(20 * time.Second)
		require.ElementsMatch(t, joined, v.Children(path+"/zkrate/processes"), "no process lost its share")
		cancel()
		require.InDelta(t, 500, second.within(10*time.Second, 20*time.Second), 10, "nor was it overlooked")
	})
}
