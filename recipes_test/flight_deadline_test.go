package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAFlightObeysItsDeadlineWhateverTheServersDo(t *testing.T) {
	for name, harm := range map[string]func(v *env, s *zksync.Session) (mend func()){
		"frozen":      func(v *env, _ *zksync.Session) func() { return v.srv.Freeze() },
		"down":        func(v *env, _ *zksync.Session) func() { v.srv.Stop(); return v.srv.Restart },
		"partitioned": func(v *env, s *zksync.Session) func() { return v.srv.Partition(s.ID()) },
	} {
		for _, before := range []bool{true, false} {
			inProcess(t, func(t *testing.T, v *env) {
				s := v.session()
				g := newGate("x")
				runner := asks(context.Background(), v.flights(1)[0], g.run)
				v.awaits(g.began, "the function")
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				start := time.Now()
				var mend func()
				if before {
					mend = harm(v, s)
				}
				p := asks(ctx, zkflight.New[string](s, flightPath), v.never)
				if !before {
					v.queued(flightLock, 2)
					time.Sleep(100 * time.Millisecond)
					mend = harm(v, s)
				}
				v.awaits(p.done, "Do")
				v.within(start, time.Second+v.slack(), name)
				require.ErrorIs(t, p.err, context.DeadlineExceeded, name)
				mend()
				v.later()
				require.LessOrEqual(t, len(v.srv.Children(flightLock)), 1, name)
				close(g.finish)
				v.awaits(runner.done, "Do")
			})
		}
	}
}

// The result cannot be written, and nobody has to wait for that.
func TestACallerOfTheRunnerObeysHisDeadlineToo(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		f := v.flights(1)[0]
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		g := newGate("x")
		p := asks(ctx, f, g.run)
		v.awaits(g.began, "the function")
		thaw := v.srv.Freeze()
		close(g.finish)
		start := time.Now()
		v.awaits(p.done, "Do")
		v.within(start, time.Second, "Do")
		require.ErrorIs(t, p.err, context.DeadlineExceeded)
		thaw()
		v.later()
		v.gets(asks(context.Background(), f, says("on")), "on", false)
	})
}

func TestGivingUpManyTimesLeavesNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		g := newGate("x")
		first := asks(context.Background(), fs[0], g.run)
		v.awaits(g.began, "the function")
		v.quiet()
		before, _ := v.goroutines()
		for range 1000 {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			_, err, _ := fs[1].Do(ctx, flightKey, v.never)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		v.quiet()
		v.goroutinesBack(before)
		require.Len(t, v.children(flightLock), 1)
		require.LessOrEqual(t, v.srv.Watches(), 4)
		close(g.finish)
		v.gets(first, "x", false)
	})
}

// Its own network is slow, but sound: Do waits for the removal of its node.
func TestWhoGivesUpWaitingForAFlightHasLeftWhenDoReturns(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		g := newGate("x")
		first := asks(context.Background(), v.flights(1)[0], g.run)
		v.awaits(g.began, "the function")
		s := v.session()
		v.srv.Delay(s.ID(), 10*time.Millisecond, 10*time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		_, err, _ := zkflight.New[string](s, flightPath).Do(ctx, flightKey, v.never)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, v.children(flightLock), 1)
		v.within(start, time.Second+20*time.Millisecond, "Do")
		close(g.finish)
		v.gets(first, "x", false)
	})
}
