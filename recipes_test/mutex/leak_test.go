package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAcceptance114AThousandCancelledWaitsLeaveNothing(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		watches := v.Watches()
		holder := v.Lock(zksync.NewMutex(proving.Calm(v), proving.LockPath))
		waiter := zksync.NewMutex(proving.Calm(v), proving.LockPath)
		wait := func() {
			ctx, cancel := context.WithCancel(context.Background())
			a := proving.Begin(ctx, waiter)
			v.Queued(proving.LockPath, 2)
			cancel()
			require.ErrorIs(t, v.Failed(a), context.Canceled)
		}
		for range 10 {
			wait()
		}
		v.Queued(proving.LockPath, 1)
		goroutines := v.Goroutines()
		for range 1000 {
			wait()
		}
		v.Queued(proving.LockPath, 1)
		v.Quiet()
		v.GoroutinesBack(goroutines)
		require.LessOrEqual(t, v.Watches(), watches+1, "one live path")
		require.NoError(t, holder.Unlock())
		v.Quiet()
		require.LessOrEqual(t, v.Watches(), watches, "the event took the last one away")
		require.NoError(t, v.Lock(waiter).Unlock())
		v.GoroutinesBack(goroutines)
	})
}

func TestAcceptance114DeadlinesAndTryLocksLeaveNothingEither(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(3)
		holder := v.Lock(ms[0])
		goroutines := v.Goroutines()
		for i := range 1000 {
			require.False(t, ms[1+i%2].TryLock())
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%5)*time.Millisecond)
			_, err := ms[1+i%2].LockContext(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		v.Quiet()
		zktest.CheckChildren(t, v.Server, proving.LockPath, holder.Node()[len(proving.LockPath)+1:])
		require.LessOrEqual(t, v.Server.Watches(), 2+1, "one live path, two sessions, and its holder's own")
		v.GoroutinesBack(goroutines)
		require.NoError(t, holder.Unlock())
		v.Quiet()
		require.Zero(t, v.Server.Watches())
	})
}

// A hold that was watched for its loss leaves its watch to the event of its own end.
func TestAcceptance114LeasesThatWereWatchedLeaveNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		require.NoError(t, v.Lock(m).Unlock())
		goroutines := v.Goroutines()
		for range 1000 {
			l := v.Lock(m)
			done, ctx := l.Done(), l.Context()
			require.NoError(t, l.Unlock())
			<-done
			<-ctx.Done()
		}
		v.Quiet()
		require.Zero(t, v.Server.Watches())
		v.GoroutinesBack(goroutines)
	})
}
