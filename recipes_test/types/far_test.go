package types_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
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

func registers(opts ...zksync.Option) user {
	return func(s *zksync.Session) func(context.Context) error {
		p := zkphaser.New(s, "/far", opts...)
		return both(phase(p.Register), phase(p.ArriveAndDeregister))
	}
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

// takes is done for members of another WaitGroup.
func takes(s *zksync.Session) func(context.Context) error {
	pool := zkwaitgroup.New(s, "/far")
	first := true
	return func(ctx context.Context) error {
		if first {
			first = false
			if err := pool.AddContext(ctx, 1000000); err != nil {
				return err
			}
			pool = zkwaitgroup.New(s, "/far")
		}
		return pool.DoneContext(ctx)
	}
}

// arrives is a party that never pauses.
func arrives(opts ...zksync.Option) user {
	return func(s *zksync.Session) func(context.Context) error {
		p := zkphaser.New(s, "/far", opts...)
		register := sync.OnceValue(func() error { _, err := p.Register(context.Background()); return err })
		return both(func(context.Context) error { return register() }, phase(p.ArriveAndAwaitAdvance))
	}
}

// acting has a phaser do something at the end of each phase.
var acting = zkphaser.WithOnAdvance(func(context.Context, int, int) bool { return false })

func terminates(s *zksync.Session) func(context.Context) error {
	return zkphaser.New(s, "/far").ForceTermination
}

// double enters and leaves.
func double(n int) user {
	return func(s *zksync.Session) func(context.Context) error {
		b := zkbarrier.NewDoubleBarrier(s, "/far", n)
		return both(b.Enter, b.Leave)
	}
}

func resets(s *zksync.Session) func(context.Context) error {
	return zkbarrier.NewBarrier(s, "/far", 1).Reset
}

// Processes near the servers never pause. Each call of a process 20 ms away ends all the same.
func TestAnyCallOfAFarProcessEndsBesideNearOnesThatNeverPause(t *testing.T) {
	for name, c := range map[string]struct {
		near  user
		nears int
		far   user
	}{
		"acquire":                            {acquires, 4, acquires},
		"acquire beside one that resizes":    {resizes, 1, acquires},
		"acquire beside three that resize":   {resizes, 3, acquires},
		"acquire beside both":                {resizesAndAcquires, 3, acquires},
		"try beside three that resize":       {resizes, 3, tries},
		"resize beside one":                  {resizes, 1, resizes},
		"resize beside three":                {resizes, 3, resizes},
		"add and done":                       {members(1, 1), 2, members(1, 1)},
		"done beside one that adds":          {members(1, 0), 1, members(0, 1)},
		"done beside one that is done":       {takes, 1, members(0, 1)},
		"done beside eight that are done":    {takes, 8, members(0, 1)},
		"add beside two that are done":       {takes, 2, members(1000, 0)},
		"register beside registrations":      {registers(), 2, registers()},
		"register beside one party":          {arrives(), 1, registers()},
		"register beside three parties":      {arrives(), 3, registers()},
		"register beside parties that act":   {arrives(acting), 2, registers(acting)},
		"terminate beside two parties":       {arrives(), 2, terminates},
		"count down":                         {counts, 2, counts},
		"a gate":                             {opens, 2, opens},
		"reset":                              {meets(1), 2, resets},
		"barrier of one, two users":          {meets(1), 1, meets(1)},
		"barrier of two, three users":        {meets(2), 2, meets(2)},
		"barrier of two, ten users":          {meets(2), 9, meets(2)},
		"double barrier of one, two users":   {double(1), 1, double(1)},
		"double barrier of two, three users": {double(2), 2, double(2)},
		"double barrier of two, ten users":   {double(2), 9, double(2)},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, stop := context.WithCancel(context.Background())
				defer stop()
				made, longest := busy(ctx, t, v, c.near, c.nears, time.Millisecond/2)
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
				stop()
				longest()
				for _, gate := range []string{"/far/turn", "/far/round/turn"} {
					v.Server.Wait(t, "the end of the last turn", func() bool { return !v.Exists(gate) })
				}
			})
		})
	}
}
