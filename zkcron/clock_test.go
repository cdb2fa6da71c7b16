package zkcron_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	path  = "/schedules/a"
	job   = "nightly"
	queue = path + "/zkcron/" + job + "/queue"
)

// skewed is a clock that is wrong.
func skewed(by time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(by) }
}

type ran struct {
	node int
	at   time.Time
	tick zkcron.Tick
}

// Three nodes, of which one has another time of day. Each of them holds the lease for a while, in every order.
func TestAcceptance155NoTickRunsTwiceWhenOneClockIsWrong(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour, 20 * time.Second, -20 * time.Second, 4 * time.Second, -4 * time.Second} {
		for wrong := range 3 {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				why := fmt.Sprintf("node %d is off by %v", wrong, by)
				var mu sync.Mutex
				var all []ran
				var stops []context.CancelFunc
				for i := range 3 {
					c := zkcron.New(v.Session(), path)
					if i == wrong {
						c.SetClock(skewed(by))
					}
					c.Every(job, 10*time.Second, func(_ context.Context, t zkcron.Tick) error {
						mu.Lock()
						defer mu.Unlock()
						all = append(all, ran{i, time.Now(), t})
						return nil
					}, zkcron.WithMissed(zkcron.RunAll))
					ctx, cancel := context.WithCancel(t.Context())
					stops = append(stops, cancel)
					go func() { _ = c.Run(ctx) }()
					v.Queued(queue, i+1)
				}
				time.Sleep(3 * time.Second)
				for _, stop := range stops {
					time.Sleep(time.Minute)
					stop()
				}
				v.Queued(queue, 0)
				require.InDelta(t, 18, len(all), 1, why)
				for i, r := range all {
					require.Equal(t, all[0].tick.Scheduled.Add(time.Duration(i)*10*time.Second), r.tick.Scheduled, why)
					apart := r.at.Sub(r.tick.Scheduled)
					switch {
					case r.node != wrong:
						require.LessOrEqual(t, apart.Abs(), 5*time.Second, "%s: %v", why, r) // late where a slow clock held before
					case by.Abs() < 5*time.Second:
						require.Equal(t, -by, apart, "%s: within the tolerance a node goes by its own clock", why)
					default:
						require.LessOrEqual(t, apart.Abs(), 2*time.Millisecond, "%s: %v", why, r)
					}
				}
			})
		}
	}
}

// A clock is set while its node holds the lease. The first tick after that is claimed an hour early, and begins in time.
func TestAcceptance155AClockThatIsSetForwardMakesNoTickEarly(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var by atomic.Int64
		c := zkcron.New(v.Session(zksync.WithTimeout(time.Minute)), path)
		c.SetClock(func() time.Time { return time.Now().Add(time.Duration(by.Load())) })
		var all []ran
		c.At(job, "0 * * * *", func(_ context.Context, t zkcron.Tick) error {
			all = append(all, ran{0, time.Now(), t})
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		a := proving.Waits(ctx, c.Run)
		time.Sleep(90 * time.Minute)
		by.Store(int64(time.Hour))
		time.Sleep(3 * time.Hour)
		cancel()
		require.ErrorIs(t, v.Failed(a), context.Canceled)
		require.Len(t, all, 4)
		for i, r := range all {
			require.Equal(t, time.Date(2000, 1, 1, 1+i, 0, 0, 0, time.UTC), r.tick.Scheduled)
			require.WithinDuration(t, r.tick.Scheduled, r.at, time.Minute)
			require.False(t, r.at.Before(r.tick.Scheduled.Add(-2*time.Millisecond)), "%v", r)
		}
	})
}

// The process learns from the answer to the start of a tick that its clock is an hour ahead, and dies before the time of the
// tick. The tick never began, so the next process runs it, also if each is run at most once.
func TestATickThatWasClaimedTooEarlyHasNotBegun(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var by atomic.Int64
		var ticks []zkcron.Tick
		noted := func(_ context.Context, t zkcron.Tick) error { ticks = append(ticks, t); return nil }
		ahead := v.Session(zksync.WithTimeout(time.Minute))
		c, heir := zkcron.New(ahead, path), zkcron.New(v.Session(), path)
		c.SetClock(func() time.Time { return time.Now().Add(time.Duration(by.Load())) })
		c.At(job, "0 3 * * *", noted, zkcron.WithAtMostOnce())
		heir.At(job, "0 3 * * *", noted, zkcron.WithAtMostOnce())
		ctx, cancel := context.WithCancel(t.Context())
		a := proving.Waits(ctx, c.Run)
		time.Sleep(30 * time.Minute)
		by.Store(int64(3 * time.Hour))
		time.Sleep(2 * time.Minute) // it looks at the clock each minute
		heal := v.Server.Partition(ahead.ID())
		defer heal()
		cancel()
		require.ErrorIs(t, v.Failed(a), context.Canceled)
		ctx, cancel = context.WithCancel(t.Context())
		a = proving.Waits(ctx, heir.Run)
		time.Sleep(3 * time.Hour)
		cancel()
		require.ErrorIs(t, v.Failed(a), context.Canceled)
		require.Len(t, ticks, 1)
		require.Equal(t, time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC), ticks[0].Scheduled)
		require.Empty(t, ticks[0].LastErr)
	})
}
