package recipes_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
)

// Panics and the like.

func TestAPanicComesOutWhereverItIsWaitedForInTheProcess(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		began, finish := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		var caught atomic.Int32
		do := func(fn func(context.Context) (string, error)) {
			all.Go(func() {
				defer func() {
					err, ok := recover().(error)
					require.True(t, ok)
					require.ErrorIs(t, err, errTest)
					require.Contains(t, err.Error(), "flight_panic_test.go", "where it happened")
					caught.Add(1)
				}()
				_, _, _ = fs[0].Do(context.Background(), flightKey, fn)
			})
		}
		do(func(context.Context) (string, error) { close(began); <-finish; panic(errTest) })
		v.awaits(began, "the function")
		do(v.never)
		other := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 2)
		v.quiet()
		close(finish)
		all.Wait()
		require.EqualValues(t, 2, caught.Load())
		v.awaits(other.done, "Do")
		var remote *zkflight.RemoteError
		require.ErrorAs(t, other.err, &remote)
		require.True(t, remote.Panicked)
		require.Equal(t, errTest.Error(), remote.Text)
		v.gets(asks(context.Background(), fs[0], says("on")), "on", false)
	})
}

// The only one who waits asked after the key had been forgotten. The result would not be for him.
func TestAPanicOfARunThatWasForgottenComesOutToo(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		ctx, giveUp := context.WithCancel(context.Background())
		began, finish := make(chan struct{}), make(chan struct{})
		first := asks(ctx, fs[0], func(context.Context) (string, error) { close(began); <-finish; panic(errTest) })
		v.awaits(began, "the function")
		require.NoError(t, fs[1].Forget(context.Background(), flightKey))
		caught := make(chan any)
		go func() {
			defer func() { caught <- recover() }()
			_, _, _ = fs[0].Do(context.Background(), flightKey, v.never)
		}()
		v.quiet()
		giveUp()
		v.awaits(first.done, "Do")
		close(finish)
		err, _ := (<-caught).(error)
		require.ErrorIs(t, err, errTest)
	})
}

func TestGoexitEndsTheGoroutinesThatWait(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		f := v.flights(1)[0]
		returned := false
		done := make(chan struct{})
		exits := func(context.Context) (string, error) { panicsWithGoexit(); return "", nil }
		go func() {
			defer close(done)
			_, _, _ = f.Do(context.Background(), flightKey, exits)
			returned = true
		}()
		v.awaits(done, "the goroutine to end")
		require.False(t, returned)
		r := <-f.DoChan(context.Background(), flightKey, exits)
		require.ErrorContains(t, r.Err, "Goexit")
		v.gets(asks(context.Background(), f, says("on")), "on", false)
	})
}

// panicsWithGoexit is what a test's own FailNow does.
func panicsWithGoexit() { runtime.Goexit() }
