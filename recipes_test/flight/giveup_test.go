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

func TestOneWhoGivesUpDoesNotEndTheRunForOthers(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		f := flights(v, 1)[0]
		type ctxKey struct{}
		ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), ctxKey{}, "kept"))
		g := newGate("fresh")
		first := asks(ctx, f, g.run)
		v.Awaits(g.began, "the function")
		require.Equal(t, "kept", g.ctx.Value(ctxKey{}))
		second := asks(context.Background(), f, v.Never)
		v.Quiet()
		cancel(proving.ErrTest)
		v.Awaits(first.done, "Do")
		require.ErrorIs(t, first.err, context.Canceled)
		require.ErrorIs(t, first.err, proving.ErrTest)
		require.NoError(t, g.ctx.Err())
		close(g.finish)
		gets(v, second, "fresh", true)
	})
}

func TestWhenAllHaveGivenUpTheFunctionIsToldAndTheNextOneRuns(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 2)
		ctx, cancel := context.WithTimeout(context.Background(), v.Ample(500*time.Millisecond))
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
		v.Awaits(began, "the function")
		second := asks(context.Background(), fs[1], says("second"))
		v.Queued(flightLock, 2)
		v.Awaits(first.done, "Do")
		v.Took(start, v.Ample(500*time.Millisecond), "Do, though the function goes on")
		require.ErrorIs(t, first.err, context.DeadlineExceeded)
		again := asks(context.Background(), fs[0], says("again"))
		v.Queued(flightLock, 3)
		close(proceed)
		gets(v, second, "second", true) // again has waited for it
		gets(v, again, "second", true)
		require.ErrorIs(t, cause, context.DeadlineExceeded)
	})
}

func TestWhoAsksWhileAWaiterIsLeavingGetsTheResultAndNotItsError(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g, first := runs(v, flights(v, 1)[0], "fresh")
		s := v.Session()
		f := zkflight.New[string](s, flightPath)
		ctx, cancel := context.WithCancel(context.Background())
		second := asks(ctx, f, v.Never)
		v.Queued(flightLock, 2)
		v.Quiet()
		v.Server.Delay(s.ID(), 5*time.Millisecond, 5*time.Millisecond)
		cancel()
		v.Quiet() // its node is still to be removed
		third := asks(context.Background(), f, v.Never)
		v.Awaits(second.done, "Do")
		require.ErrorIs(t, second.err, context.Canceled)
		time.Sleep(time.Second) // the third queues, and listens
		close(g.finish)
		gets(v, first, "fresh", true)
		gets(v, third, "fresh", true)
	})
}

func TestAWaiterForAFlightObeysItsDeadlineAndLeavesNothing(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 2)
		g, first := runs(v, fs[0], "fresh")
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err, shared := fs[1].Do(ctx, flightKey, v.Never)
		v.Took(start, 500*time.Millisecond, "Do")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, shared)
		if !v.Virtual {
			v.Quiet() // a server that stands still may make the node yet
		}
		v.Left(flightLock, 1, "it gave up")
		close(g.finish)
		gets(v, first, "fresh", false)
	})
}

func TestClosingTheSessionEndsAFlight(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 2)
		s := v.Session()
		runs := zkflight.New[string](s, flightPath)
		began := make(chan struct{})
		first := asks(context.Background(), runs, func(ctx context.Context) (string, error) {
			close(began)
			<-ctx.Done()
			return "", nil
		})
		v.Awaits(began, "the function")
		second := asks(context.Background(), fs[0], says("second"))
		v.Queued(flightLock, 2)
		require.NoError(t, s.Close())
		v.Awaits(first.done, "Do")
		require.ErrorIs(t, first.err, zksync.ErrClosed)
		gets(v, second, "second", false)
		_, err, _ := runs.Do(context.Background(), flightKey, v.Never)
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}
