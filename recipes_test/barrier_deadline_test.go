package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	begin     func(v *env, s *zksync.Session) (heal func())
}{
	"refused":    {false, (*env).cutOff},
	"black hole": {false, (*env).partition},
	"frozen":     {true, func(v *env, _ *zksync.Session) func() { return v.srv.Freeze() }},
	"down":       {true, func(v *env, _ *zksync.Session) func() { v.srv.Stop(); return v.srv.Restart }},
}

func eachOutage(t *testing.T, f func(t *testing.T, v *env, begin func(*env, *zksync.Session) func())) {
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			run := each
			if o.inProcess {
				run = inProcess
			}
			run(t, func(t *testing.T, v *env) { f(t, v, o.begin) })
		})
	}
}

func TestAcceptance113CallsOfABarrierKeepTheirDeadlineInEveryOutage(t *testing.T) {
	for name, call := range barrierCalls {
		for _, known := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				eachOutage(t, func(t *testing.T, v *env, begin func(*env, *zksync.Session) func()) {
					s := v.session(zksync.WithTimeout(v.span(4*time.Second, lifetime)))
					b := zkbarrier.NewBarrier(s, barrierPath, 2)
					if known {
						v.waitingAt(b, 0)
					}
					heal := begin(v, s)
					ctx, start := soon(t)
					err := call(ctx, b)
					took := time.Since(start)
					heal()
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.GreaterOrEqual(t, took, deadline-time.Millisecond, "gave up too early")
					require.LessOrEqual(t, took, deadline+v.slack())
					v.usable(s, b)
				})
			})
		}
	}
}

// usable resets the barrier of two and passes it.
func (v *env) usable(s *zksync.Session, b *zkbarrier.Barrier) {
	v.t.Helper()
	v.inTime(func() bool { return s.State() == zksync.Connected })
	v.inTime(func() bool { // what a party that gave up does behind its back may take until now
		require.NoError(v.t, b.Reset(context.Background()))
		return len(v.children(barrierPath)) > 0
	})
	v.inTime(func() bool {
		both := awaitAll(context.Background(), b, b)
		v.awaits(both[0].done, "Await to return")
		v.awaits(both[1].done, "Await to return")
		if both[0].err == nil && both[1].err == nil {
			return true
		}
		require.ErrorIs(v.t, both[0].err, zksync.ErrBroken)
		require.NoError(v.t, b.Reset(context.Background()))
		return false
	})
	v.emptied()
}

// An outage that begins while a party waits.
func TestAcceptance113AWaitAtABarrierKeepsItsDeadlineInEveryOutage(t *testing.T) {
	eachOutage(t, func(t *testing.T, v *env, begin func(*env, *zksync.Session) func()) {
		s := v.session(zksync.WithTimeout(v.span(4*time.Second, lifetime)))
		b := zkbarrier.NewBarrier(s, barrierPath, 2)
		v.waitingAt(b, 0)
		start := time.Now()
		long := v.ample(deadline) // to arrive in, too
		ctx, cancel := context.WithTimeout(context.Background(), long)
		defer cancel()
		a := await(ctx, b)
		v.gathered(b, 1)
		heal := begin(v, s)
		v.awaits(a.done, "Await to return")
		heal()
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		require.LessOrEqual(t, a.at.Sub(start), long+v.slack())
		v.usable(s, b)
	})
}

// Whoever gave up during an outage breaks the barrier as soon as it can.
func TestAPartyThatGaveUpDuringAnOutageBreaksTheBarrierAfterIt(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(v.span(20*time.Second, lifetime)))
		bs := v.barriers(3)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a, other := await(ctx, zkbarrier.NewBarrier(s, barrierPath, 3)), await(context.Background(), bs[0])
		v.gathered(bs[1], 2)
		heal := v.cutOff(s)
		start := time.Now()
		cancel()
		v.awaits(a.done, "Await to return")
		v.within(start, 100*time.Millisecond, "giving up")
		require.ErrorIs(t, a.err, context.Canceled)
		require.True(t, other.pending())
		heal()
		start = time.Now()
		v.brokenFor(other)
		v.within(start, 5*time.Second, "the reconnect")
		v.emptied()
	})
}

func TestABarrierWorksOnAnAdoptedConnection(t *testing.T) {
	for _, opts := range [][]zksync.Option{nil, {zkbarrier.Tolerant()}} {
		inProcess(t, func(t *testing.T, v *env) {
			ctx := context.Background()
			var bs []*zkbarrier.Barrier
			for range 3 {
				bs = append(bs, zkbarrier.NewBarrier(v.tapped(), barrierPath, 3, opts...))
			}
			for range 3 {
				v.leave(awaitAll(ctx, bs...)...)
			}
			early := awaitAll(ctx, bs[:2]...)
			v.gathered(bs[2], 2)
			time.Sleep(time.Minute)
			v.leave(append(early, await(ctx, bs[2]))...)
			early = awaitAll(ctx, bs[:2]...)
			v.gathered(bs[2], 2)
			require.NoError(t, bs[2].Reset(ctx))
			v.brokenFor(early...)
			v.emptied()
		})
	}
}
