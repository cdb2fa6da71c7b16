package flight_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAFlightObeysItsDeadlineWhateverTheServersDo(t *testing.T) {
	for name, harm := range map[string]func(v *proving.Env, s *zksync.Session) (mend func()){
		"frozen":      func(v *proving.Env, _ *zksync.Session) func() { return v.Server.Freeze() },
		"down":        func(v *proving.Env, _ *zksync.Session) func() { v.Server.Stop(); return v.Server.Restart },
		"partitioned": func(v *proving.Env, s *zksync.Session) func() { return v.Server.Partition(s.ID()) },
	} {
		for _, before := range []bool{true, false} {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				g, runner := runs(v, flights(v, 1)[0], "x")
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				start := time.Now()
				var mend func()
				if before {
					mend = harm(v, s)
				}
				p := asks(ctx, zkflight.New[string](s, flightPath), v.Never)
				if !before {
					v.Queued(flightLock, 2)
					time.Sleep(100 * time.Millisecond)
					mend = harm(v, s)
				}
				v.Awaits(p.done, "Do")
				v.Within(start, time.Second+v.Slack(), name)
				require.ErrorIs(t, p.err, context.DeadlineExceeded, name)
				mend()
				v.Later()
				require.LessOrEqual(t, len(v.Server.Children(flightLock)), 1, name)
				close(g.finish)
				v.Awaits(runner.done, "Do")
			})
		}
	}
}

// The result cannot be written, and nobody has to wait for that.
func TestACallerOfTheRunnerObeysHisDeadlineToo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		f := flights(v, 1)[0]
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		g := newGate("x")
		p := asks(ctx, f, g.run)
		v.Awaits(g.began, "the function")
		thaw := v.Server.Freeze()
		close(g.finish)
		start := time.Now()
		v.Awaits(p.done, "Do")
		v.Within(start, time.Second, "Do")
		require.ErrorIs(t, p.err, context.DeadlineExceeded)
		thaw()
		v.Later()
		gets(v, asks(context.Background(), f, says("on")), "on", false)
	})
}

func TestGivingUpManyTimesLeavesNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 2)
		g, first := runs(v, fs[0], "x")
		before := v.Goroutines()
		for range 1000 {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			_, err, _ := fs[1].Do(ctx, flightKey, v.Never)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		v.Quiet()
		v.GoroutinesBack(before)
		require.Len(t, v.Children(flightLock), 1)
		require.LessOrEqual(t, v.Server.Watches(), 4)
		close(g.finish)
		gets(v, first, "x", false)
	})
}

// Its own network is slow, but sound: Do waits for the removal of its node.
func TestWhoGivesUpWaitingForAFlightHasLeftWhenDoReturns(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g, first := runs(v, flights(v, 1)[0], "x")
		s := v.Session()
		v.Server.Delay(s.ID(), 10*time.Millisecond, 10*time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		_, err, _ := zkflight.New[string](s, flightPath).Do(ctx, flightKey, v.Never)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, v.Children(flightLock), 1)
		v.Within(start, time.Second+20*time.Millisecond, "Do")
		close(g.finish)
		gets(v, first, "x", false)
	})
}
