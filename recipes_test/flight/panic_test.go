package flight_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
)

// Panics and the like.

func TestAPanicComesOutWhereverItIsWaitedForInTheProcess(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 2)
		began, finish := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		var caught atomic.Int32
		do := func(fn func(context.Context) (string, error)) {
			all.Go(func() {
				defer func() {
					err, ok := recover().(error)
					require.True(t, ok)
					require.ErrorIs(t, err, proving.ErrTest)
					require.Contains(t, err.Error(), "panic_test.go", "where it happened")
					caught.Add(1)
				}()
				_, _, _ = fs[0].Do(context.Background(), flightKey, fn)
			})
		}
		do(func(context.Context) (string, error) { close(began); <-finish; panic(proving.ErrTest) })
		v.Awaits(began, "the function")
		do(v.Never)
		other := asks(context.Background(), fs[1], v.Never)
		v.Queued(flightLock, 2)
		v.Quiet()
		close(finish)
		all.Wait()
		require.EqualValues(t, 2, caught.Load())
		v.Awaits(other.done, "Do")
		var remote *zkflight.RemoteError
		require.ErrorAs(t, other.err, &remote)
		require.True(t, remote.Panicked)
		require.Equal(t, proving.ErrTest.Error(), remote.Text)
		gets(v, asks(context.Background(), fs[0], says("on")), "on", false)
	})
}

// The only one who waits asked after the key had been forgotten. The result would not be for him.
func TestAPanicOfARunThatWasForgottenComesOutToo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 2)
		ctx, giveUp := context.WithCancel(context.Background())
		began, finish := make(chan struct{}), make(chan struct{})
		first := asks(ctx, fs[0], func(context.Context) (string, error) { close(began); <-finish; panic(proving.ErrTest) })
		v.Awaits(began, "the function")
		require.NoError(t, fs[1].Forget(context.Background(), flightKey))
		caught := make(chan any)
		go func() {
			defer func() { caught <- recover() }()
			_, _, _ = fs[0].Do(context.Background(), flightKey, v.Never)
		}()
		v.Quiet()
		giveUp()
		v.Awaits(first.done, "Do")
		close(finish)
		err, _ := (<-caught).(error)
		require.ErrorIs(t, err, proving.ErrTest)
	})
}

func TestGoexitEndsTheGoroutinesThatWait(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		f := flights(v, 1)[0]
		returned := false
		done := make(chan struct{})
		exits := func(context.Context) (string, error) { panicsWithGoexit(); return "", nil }
		go func() {
			defer close(done)
			_, _, _ = f.Do(context.Background(), flightKey, exits)
			returned = true
		}()
		v.Awaits(done, "the goroutine to end")
		require.False(t, returned)
		r := <-f.DoChan(context.Background(), flightKey, exits)
		require.ErrorContains(t, r.Err, "Goexit")
		gets(v, asks(context.Background(), f, says("on")), "on", false)
	})
}

// panicsWithGoexit is what a test's own FailNow does.
func panicsWithGoexit() { runtime.Goexit() }
