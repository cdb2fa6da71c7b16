package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

// barrierCalls is every call of a barrier that takes a context.
var barrierCalls = map[string]func(ctx context.Context, b *zkbarrier.Barrier) error{
	"Await":   func(ctx context.Context, b *zkbarrier.Barrier) error { _, err := b.Await(ctx); return err },
	"Waiting": func(ctx context.Context, b *zkbarrier.Barrier) error { _, err := b.Waiting(ctx); return err },
	"Broken":  func(ctx context.Context, b *zkbarrier.Barrier) error { _, err := b.Broken(ctx); return err },
	"Reset":   func(ctx context.Context, b *zkbarrier.Barrier) error { return b.Reset(ctx) },
}

// outages keep a session from the servers. Those of the server itself are for the in-process one.
var outages = map[string]struct {
	inProcess bool
	begin     func(v *proving.Env, s *zksync.Session) (heal func())
}{
	"refused":    {false, (*proving.Env).CutOff},
	"black hole": {false, (*proving.Env).Partition},
	"frozen":     {true, func(v *proving.Env, _ *zksync.Session) func() { return v.Server.Freeze() }},
	"down":       {true, func(v *proving.Env, _ *zksync.Session) func() { v.Server.Stop(); return v.Server.Restart }},
}

func eachOutage(t *testing.T, f func(t *testing.T, v *proving.Env, begin func(*proving.Env, *zksync.Session) func())) {
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			run := proving.Each
			if o.inProcess {
				run = proving.InProcess
			}
			run(t, func(t *testing.T, v *proving.Env) { f(t, v, o.begin) })
		})
	}
}

func TestAcceptance113CallsOfABarrierKeepTheirDeadlineInEveryOutage(t *testing.T) {
	proving.Together(t)
	for name, call := range barrierCalls {
		for _, known := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				proving.Together(t)
				eachOutage(t, func(t *testing.T, v *proving.Env, begin func(*proving.Env, *zksync.Session) func()) {
					s := v.Session(zksync.WithTimeout(v.Span(4*time.Second, proving.Lifetime)))
					b := zkbarrier.NewBarrier(s, proving.BarrierPath, 2)
					if known {
						waitingAt(v, b, 0)
					}
					heal := begin(v, s)
					ctx, start := proving.Soon(t)
					err := call(ctx, b)
					took := time.Since(start)
					heal()
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.GreaterOrEqual(t, took, proving.Deadline-time.Millisecond, "gave up too early")
					require.LessOrEqual(t, took, proving.Deadline+v.Slack())
					usable(v, s, b)
				})
			})
		}
	}
}

// usable resets the barrier of two and passes it.
func usable(v *proving.Env, s *zksync.Session, b *zkbarrier.Barrier) {
	v.T.Helper()
	inTime(v, func() bool { return s.State() == zksync.Connected })
	inTime(v, func() bool { // what a party that gave up does behind its back may take until now
		require.NoError(v.T, b.Reset(context.Background()))
		return len(v.Children(proving.BarrierPath)) > 0
	})
	inTime(v, func() bool {
		both := awaitAll(context.Background(), b, b)
		v.Awaits(both[0].done, "Await to return")
		v.Awaits(both[1].done, "Await to return")
		if both[0].err == nil && both[1].err == nil {
			return true
		}
		require.ErrorIs(v.T, both[0].err, zksync.ErrBroken)
		require.NoError(v.T, b.Reset(context.Background()))
		return false
	})
	emptied(v)
}

// An outage that begins while a party waits.
func TestAcceptance113AWaitAtABarrierKeepsItsDeadlineInEveryOutage(t *testing.T) {
	proving.Together(t)
	eachOutage(t, func(t *testing.T, v *proving.Env, begin func(*proving.Env, *zksync.Session) func()) {
		s := v.Session(zksync.WithTimeout(v.Span(4*time.Second, proving.Lifetime)))
		b := zkbarrier.NewBarrier(s, proving.BarrierPath, 2)
		waitingAt(v, b, 0)
		start := time.Now()
		long := v.Ample(proving.Deadline) // to arrive in, too
		ctx, cancel := context.WithTimeout(context.Background(), long)
		defer cancel()
		a := await(ctx, b)
		gathered(v, b, 1)
		heal := begin(v, s)
		v.Awaits(a.done, "Await to return")
		heal()
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		require.LessOrEqual(t, a.at.Sub(start), long+v.Slack())
		usable(v, s, b)
	})
}

// Whoever gave up during an outage breaks the barrier as soon as it can.
func TestAPartyThatGaveUpDuringAnOutageBreaksTheBarrierAfterIt(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(v.Span(20*time.Second, proving.Lifetime)))
		bs := barriers(v, 3)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a, other := await(ctx, zkbarrier.NewBarrier(s, proving.BarrierPath, 3)), await(context.Background(), bs[0])
		gathered(v, bs[1], 2)
		heal := v.CutOff(s)
		start := time.Now()
		cancel()
		v.Awaits(a.done, "Await to return")
		v.Within(start, 100*time.Millisecond, "giving up")
		require.ErrorIs(t, a.err, context.Canceled)
		require.True(t, other.pending())
		heal()
		start = time.Now()
		brokenFor(v, other)
		v.Within(start, 5*time.Second, "the reconnect")
		emptied(v)
	})
}
