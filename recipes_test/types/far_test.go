package types_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// user makes a process of something, which then calls it again and again.
type user func(s *zksync.Session) func(ctx context.Context) error

// both calls one after the other.
func both(all ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, f := range all {
			if err := f(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// phase is without the number that a call of a phaser returns.
func phase(f func(context.Context) (int, error)) func(context.Context) error {
	return func(ctx context.Context) error { _, err := f(ctx); return err }
}

func acquires(s *zksync.Session) func(context.Context) error {
	w := zksemaphore.NewWeighted(s, "/far", 3)
	return func(ctx context.Context) error {
		l, err := w.AcquireLease(ctx, 1)
		if err == nil {
			err = l.Unlock()
		}
		return err
	}
}

func members(add, done int) user {
	return func(s *zksync.Session) func(context.Context) error {
		g := zkwaitgroup.New(s, "/far")
		return func(ctx context.Context) error {
			if add > 0 {
				if err := g.AddContext(ctx, add); err != nil {
					return err
				}
			}
			for range done {
				if err := g.DoneContext(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func registers(s *zksync.Session) func(context.Context) error {
	p := zkphaser.New(s, "/far")
	return both(phase(p.Register), phase(p.ArriveAndDeregister))
}

func counts(s *zksync.Session) func(context.Context) error {
	return zklatch.New(s, "/far", 100000).CountDown
}

func opens(s *zksync.Session) func(context.Context) error {
	g := zklatch.NewGate(s, "/far")
	return both(g.Close, g.Open)
}

func meets(parties int) user {
	return func(s *zksync.Session) func(context.Context) error {
		return phase(zkbarrier.NewBarrier(s, "/far", parties).Await)
	}
}

// resizes changes the number of permits each time.
func resizes(s *zksync.Session) func(context.Context) error {
	w := zksemaphore.NewWeighted(s, "/far", 3)
	n := int64(0)
	return func(ctx context.Context) error {
		n++
		return w.Resize(ctx, 3+n%5)
	}
}

func resizesAndAcquires(s *zksync.Session) func(context.Context) error {
	return both(resizes(s), acquires(s))
}

// tries acquires what nobody holds.
func tries(s *zksync.Session) func(context.Context) error {
	w := zksemaphore.NewWeighted(s, "/far", 3)
	return func(ctx context.Context) error {
		l, err := w.TryAcquireLease(ctx, 1)
		if err == nil {
			err = l.Unlock()
		}
		return err
	}
}

func resets(s *zksync.Session) func(context.Context) error {
	return zkbarrier.NewBarrier(s, "/far", 1).Reset
}

// Processes near the servers never pause. Each call of a process 20 ms away ends all the same.
func TestACallOfAFarProcessEndsBesideNearOnesThatNeverPause(t *testing.T) {
	for name, c := range map[string]struct {
		near  user
		nears int
		far   user
	}{
		"acquire":                          {acquires, 4, acquires},
		"add and done":                     {members(1, 1), 2, members(1, 1)},
		"register beside registrations":    {registers, 2, registers},
		"count down":                       {counts, 2, counts},
		"a gate":                           {opens, 2, opens},
		"reset":                            {meets(1), 2, resets},
		"acquire beside one that resizes":  {resizes, 1, acquires},
		"acquire beside three that resize": {resizes, 3, acquires},
		"resize beside one":                {resizes, 1, resizes},
		"resize beside three":              {resizes, 3, resizes},
		"try to acquire beside three that resize":      {resizes, 3, tries},
		"acquire beside three that resize and acquire": {resizesAndAcquires, 3, acquires},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, stop := context.WithCancel(context.Background())
				defer stop()
				var made atomic.Int64
				for range c.nears {
					s := v.Session()
					use := c.near(s)
					v.Server.Delay(s.ID(), time.Millisecond/2, time.Millisecond/2)
					go func() {
						for ctx.Err() == nil {
							if err := use(ctx); ctx.Err() == nil {
								assert.NoError(t, err)
							}
							made.Add(1)
						}
					}()
				}
				time.Sleep(time.Second)
				s := v.Session()
				use := c.far(s)
				v.Server.Delay(s.ID(), 20*time.Millisecond, 20*time.Millisecond)
				most := time.Duration(0)
				for range 10 {
					start := time.Now()
					within, cancel := context.WithTimeout(ctx, 10*time.Second)
					err := use(within)
					cancel()
					require.NoError(t, err, "beside %d", made.Load())
					most = max(most, time.Since(start))
				}
				t.Logf("the longest call took %v, beside %d", most, made.Load())
				require.Less(t, most, 10*time.Second)
			})
		})
	}
}
