package zkprom_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A Collector has all parts of a tracer that it needs.
var _ interface {
	zksync.Tracer
	zksync.ReleaseTracer
	zksync.LossTracer
	zksync.StateTracer
	zksync.SessionTracer
	zksync.RequestTracer
	zksync.DeliveryTracer
	zksync.TickTracer
	zksync.AssignTracer
} = (*zkprom.Collector)(nil)

var (
	start = zksync.AcquireStartData{Path: "/locks/a", Name: "a", Kind: zksync.KindLock}
	token = zksync.Token{Zxid: 7}
	got   = zksync.AcquireEndData{Path: "/locks/a", Name: "a", Kind: zksync.KindLock, Token: token, Waited: time.Second}
	lost  = zksync.LossData{Path: "/locks/a", Name: "a", Kind: zksync.KindLock, Token: token, Held: time.Minute, Reason: zksync.ReasonSession, Err: zksync.ErrLost}
)

// Locks within one another, two collectors at once, and contexts that a tracer in between has dropped.
func TestAContextEndsItsOwnHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := zkprom.New(), zkprom.New()
		outer := c.AcquireStart(d.AcquireStart(context.Background(), start), start)
		c.AcquireEnd(outer, got)
		d.AcquireEnd(outer, got)
		time.Sleep(time.Second)
		inner := c.AcquireStart(outer, start)
		innerGot := got
		innerGot.Token.Seq = 1
		c.AcquireEnd(inner, innerGot)
		c.Lost(outer, lost)
		require.Equal(t, series{`held{kind="lock",name="a"}`: 1, `waiting{kind="lock",name="a"}`: 0, `held_since_seconds{kind="lock",name="a"}`: unix(time.Now())}, now(t, c))
		require.Equal(t, 1.0, now(t, d)[`held{kind="lock",name="a"}`])
		c.Release(inner, zksync.ReleaseData{Name: "a", Kind: zksync.KindLock, Token: zksync.Token{Zxid: 99}})
		require.Equal(t, 1.0, now(t, c)[`held{kind="lock",name="a"}`], "another lease with the values of this context")
		d.Lost(outer, lost)
		require.Equal(t, 0.0, now(t, d)[`held{kind="lock",name="a"}`])
		c.AcquireEnd(context.Background(), got)
		c.Release(context.Background(), zksync.ReleaseData{Name: "a", Kind: zksync.KindLock, Token: token})
		require.Equal(t, 1.0, now(t, c)[`held{kind="lock",name="a"}`])
		require.Equal(t, 3.0, ends(t, c)[`acquire_wait_seconds_count{kind="lock",name="a",outcome="granted"}`])
	})
}

// Against a plain model: the oldest of those that hold, whichever end, in any order.
func TestTheOldestHoldOfRandomOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := zkprom.New(), rand.New(rand.NewPCG(1, 2))
		type hold struct {
			ctx context.Context
			at  time.Time
		}
		var held []hold
		for range 300 {
			time.Sleep(time.Second)
			if len(held) == 0 || r.IntN(2) == 0 {
				ctx := c.AcquireStart(context.Background(), start)
				c.AcquireEnd(ctx, got)
				held = append(held, hold{ctx, time.Now()})
			} else {
				i := r.IntN(len(held))
				c.Lost(held[i].ctx, lost)
				held = slices.Delete(held, i, i+1)
			}
			want := series{`held{kind="lock",name="a"}`: float64(len(held)), `waiting{kind="lock",name="a"}`: 0}
			if len(held) > 0 {
				want[`held_since_seconds{kind="lock",name="a"}`] = unix(held[0].at)
			}
			require.Equal(t, want, now(t, c))
		}
	})
}

func TestTheOutcomeOfEachError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timeout := fmt.Errorf("dial: %w", os.ErrDeadlineExceeded)
		for outcome, errs := range map[string][]error{
			"granted":      {nil},
			"not_acquired": {zksync.ErrNotAcquired},
			"canceled":     {context.Canceled, context.DeadlineExceeded},
			"lost":         {zksync.ErrLost, zksync.ErrMaxHold, zksync.ErrSessionExpired, errors.Join(zksync.ErrSessionExpired, context.DeadlineExceeded)},
			"error":        {zksync.ErrClosed, zksync.ErrMisuse, zksync.ErrDeadlock, zksync.ErrUpgrade, timeout, errors.Join(zksync.ErrClosed, context.Canceled)},
		} {
			for _, err := range errs {
				c := zkprom.New()
				if err != nil {
					err = &zksync.Error{Op: "lock", Err: err}
				}
				c.AcquireEnd(c.AcquireStart(context.Background(), start), zksync.AcquireEndData{Name: "a", Kind: zksync.KindLock, Err: err})
				require.Equal(t, series{`acquire_wait_seconds_count{kind="lock",name="a",outcome="` + outcome + `"}`: 1}, ends(t, c), err)
			}
		}
	})
}

func TestTheEndOfEachReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for reason, end := range map[string]string{zksync.ReasonSession: "lost", zksync.ReasonRemoved: "lost", zksync.ReasonRevoked: "revoked", zksync.ReasonMaxHold: "max_hold"} {
			c := zkprom.New()
			ctx := c.AcquireStart(context.Background(), start)
			require.Equal(t, 0.0, exposed(t, c, "losses")[`losses_total{kind="lock",name="a",reason="`+reason+`"}`], "before the first loss")
			require.Len(t, exposed(t, c, "losses"), 4)
			c.AcquireEnd(ctx, got)
			d := lost
			d.Reason = reason
			c.Lost(ctx, d)
			require.Equal(t, 1.0, ends(t, c)[`losses_total{kind="lock",name="a",reason="`+reason+`"}`])
			require.Equal(t, 1.0, ends(t, c)[`hold_seconds_count{end="`+end+`",kind="lock",name="a"}`])
		}
	})
}

func TestMetricsAreReadWhileTheyChange(t *testing.T) {
	c := zkprom.New()
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for range 200 {
				at := start
				at.Name = fmt.Sprint("n", i)
				ctx := c.AcquireStart(context.Background(), at)
				c.AcquireEnd(ctx, got)
				c.Lost(ctx, lost)
				c.Request(zksync.RequestData{Op: "create"})
			}
		})
	}
	for range 20 {
		exposition(t, c)
	}
	work.Wait()
	for name, n := range read(t, c, "held", "waiting") {
		require.Zero(t, n, name)
	}
}

// An acquisition and its release cost one allocation: the context.
func TestAnAcquisitionCostsOneAllocation(t *testing.T) {
	c := zkprom.New(zkprom.WithPaths("/locks/*"))
	for name, allocations := range map[string]float64{"a": 1, "": 1} {
		at, end, release := start, got, zksync.ReleaseData{Path: "/locks/a", Name: name, Kind: zksync.KindLock, Token: token, Held: time.Second}
		at.Name, end.Name = name, name
		background := context.Background()
		require.Equal(t, allocations, testing.AllocsPerRun(1000, func() {
			ctx := c.AcquireStart(background, at)
			c.AcquireEnd(ctx, end)
			c.Release(ctx, release)
		}))
		require.Zero(t, testing.AllocsPerRun(1000, func() { c.Request(zksync.RequestData{Op: "create", Duration: time.Millisecond}) }))
	}
}

func BenchmarkAcquisition(b *testing.B) {
	c := zkprom.New()
	release := zksync.ReleaseData{Path: "/locks/a", Name: "a", Kind: zksync.KindLock, Token: token, Held: time.Second}
	b.ReportAllocs()
	for b.Loop() {
		ctx := c.AcquireStart(context.Background(), start)
		c.AcquireEnd(ctx, got)
		c.Release(ctx, release)
	}
}

func BenchmarkRequest(b *testing.B) {
	c := zkprom.New()
	b.ReportAllocs()
	for b.Loop() {
		c.Request(zksync.RequestData{Op: "create", Duration: time.Millisecond})
	}
}

// Whatever happens: at the end nothing is held and nothing waits, and each grant has ended once.
func TestNothingIsLeftOfRandomPlays(t *testing.T) {
	var lostInAll float64
	for seed := range uint64(12) {
		c := zkprom.New()
		play(t, c, func(t *testing.T, srv *zktest.Server, s *zksync.Session) {
			r := rand.New(rand.NewPCG(seed, 0))
			sessions := []*zksync.Session{s, srv.Session(t, zksync.WithTracer(c))}
			var work sync.WaitGroup
			for i := range 6 {
				m := zksync.NewMutex(sessions[i%2], fmt.Sprintf("/locks/%d", i/4), zksync.WithName("a"), zksync.WithLinger(time.Duration(r.IntN(2))*time.Second))
				pauses := rand.New(rand.NewPCG(seed, uint64(i)))
				pause := func() time.Duration { return time.Duration(pauses.IntN(3000)) * time.Millisecond }
				work.Go(func() {
					for range 5 {
						ctx, cancel := context.WithTimeout(t.Context(), 2*pause())
						if l, err := m.LockContext(ctx); err == nil {
							time.Sleep(pause())
							_ = l.Unlock()
						}
						cancel()
						time.Sleep(pause())
					}
				})
			}
			for range 5 {
				time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
				switch id := sessions[r.IntN(2)].ID(); r.IntN(4) {
				case 0:
					srv.Disconnect(id)
				case 1:
					srv.DropReplies(id)
				default:
					srv.Expire(id)
				}
			}
			work.Wait()
			time.Sleep(time.Minute)
			require.Equal(t, series{`held{kind="lock",name="a"}`: 0, `waiting{kind="lock",name="a"}`: 0}, now(t, c), seed)
			var granted, ended, losses float64
			for name, n := range ends(t, c) {
				switch {
				case name == `acquire_wait_seconds_count{kind="lock",name="a",outcome="granted"}`:
					granted = n
				case name == `hold_seconds_count{end="released",kind="lock",name="a"}`:
					ended += n
				case name == `hold_seconds_count{end="lost",kind="lock",name="a"}`:
					ended, losses, lostInAll = ended+n, losses+n, lostInAll+n
				case name == `losses_total{kind="lock",name="a",reason="session"}`:
					losses -= n
				}
			}
			require.Positive(t, granted)
			require.Equal(t, granted, ended, seed)
			require.Zero(t, losses, seed)
		})
	}
	require.Positive(t, lostInAll)
}
