package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestOneWhoGivesUpDoesNotEndTheRunForOthers(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		f := v.flights(1)[0]
		type ctxKey struct{}
		ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), ctxKey{}, "kept"))
		g := newGate("fresh")
		first := asks(ctx, f, g.run)
		v.awaits(g.began, "the function")
		require.Equal(t, "kept", g.ctx.Value(ctxKey{}))
		second := asks(context.Background(), f, v.never)
		v.quiet()
		cancel(errTest)
		v.awaits(first.done, "Do")
		require.ErrorIs(t, first.err, context.Canceled)
		require.ErrorIs(t, first.err, errTest)
		require.NoError(t, g.ctx.Err())
		close(g.finish)
		v.gets(second, "fresh", true)
	})
}

func TestWhenAllHaveGivenUpTheFunctionIsToldAndTheNextOneRuns(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		ctx, cancel := context.WithTimeout(context.Background(), v.ample(500*time.Millisecond))
		defer cancel()
		began, proceed := make(chan struct{}), make(chan struct{})
		var cause error
		start := time.Now()
		first := asks(ctx, fs[0], func(ctx context.Context) (string, error) {
			close(began)
			<-ctx.Done()
			cause = context.Cause(ctx)
			<-proceed
			return "", ctx.Err()
		})
		v.awaits(began, "the function")
		second := asks(context.Background(), fs[1], says("second"))
		v.queued(flightLock, 2)
		v.awaits(first.done, "Do")
		v.took(start, v.ample(500*time.Millisecond), "Do, though the function goes on")
		require.ErrorIs(t, first.err, context.DeadlineExceeded)
		again := asks(context.Background(), fs[0], says("again"))
		v.queued(flightLock, 3)
		close(proceed)
		v.gets(second, "second", true) // again has waited for it
		v.gets(again, "second", true)
		require.ErrorIs(t, cause, context.DeadlineExceeded)
	})
}

func TestWhoAsksWhileAWaiterIsLeavingGetsTheResultAndNotItsError(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		g := newGate("fresh")
		first := asks(context.Background(), v.flights(1)[0], g.run)
		v.awaits(g.began, "the function")
		s := v.session()
		f := zkflight.New[string](s, flightPath)
		ctx, cancel := context.WithCancel(context.Background())
		second := asks(ctx, f, v.never)
		v.queued(flightLock, 2)
		v.quiet()
		v.srv.Delay(s.ID(), 5*time.Millisecond, 5*time.Millisecond)
		cancel()
		v.quiet() // its node is still to be removed
		third := asks(context.Background(), f, v.never)
		v.awaits(second.done, "Do")
		require.ErrorIs(t, second.err, context.Canceled)
		time.Sleep(time.Second) // the third queues, and listens
		close(g.finish)
		v.gets(first, "fresh", true)
		v.gets(third, "fresh", true)
	})
}

func TestAWaiterForAFlightObeysItsDeadlineAndLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		g := newGate("fresh")
		first := asks(context.Background(), fs[0], g.run)
		v.awaits(g.began, "the function")
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err, shared := fs[1].Do(ctx, flightKey, v.never)
		v.took(start, 500*time.Millisecond, "Do")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, shared)
		if !v.virtual {
			v.quiet() // a server that stands still may make the node yet
		}
		v.left(flightLock, 1, "it gave up")
		close(g.finish)
		v.gets(first, "fresh", false)
	})
}

func TestClosingTheSessionEndsAFlight(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		s := v.session()
		runs := zkflight.New[string](s, flightPath)
		began := make(chan struct{})
		first := asks(context.Background(), runs, func(ctx context.Context) (string, error) {
			close(began)
			<-ctx.Done()
			return "", nil
		})
		v.awaits(began, "the function")
		second := asks(context.Background(), fs[0], says("second"))
		v.queued(flightLock, 2)
		require.NoError(t, s.Close())
		v.awaits(first.done, "Do")
		require.ErrorIs(t, first.err, zksync.ErrClosed)
		v.gets(second, "second", false)
		_, err, _ := runs.Do(context.Background(), flightKey, v.never)
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}
