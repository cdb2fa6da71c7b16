package recipes_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// goroutines counts those of the bubble, or of the process in real time. In real time the stacks are of a moment before.
//
// Call quiet before the first count: a session that has just begun, such as the administrator's, answers before it has
// started its heartbeat.
func (v *env) goroutines() (n int, stacks string) {
	all := make([]byte, 4<<20)
	stacks = string(all[:runtime.Stack(all, true)])
	if !v.virtual {
		return runtime.NumGoroutine(), stacks
	}
	return strings.Count(stacks, ", synctest bubble "), stacks
}

// goroutinesBack waits until there are no more goroutines than before.
func (v *env) goroutinesBack(before int) {
	v.t.Helper()
	if !v.virtual {
		defer func() {
			if v.t.Failed() {
				n, stacks := v.goroutines()
				v.t.Logf("%d now:\n%s", n, stacks)
			}
		}()
		v.eventually(func() bool { return runtime.NumGoroutine() <= before }, "goroutines are left over, %d before", before)
		return
	}
	v.quiet()
	n, stacks := v.goroutines()
	// A goroutine that has ended counts until the scheduler has buried it, which takes no virtual time.
	for range 1000 {
		if n <= before {
			return
		}
		runtime.Gosched()
		n, stacks = v.goroutines()
	}
	require.Failf(v.t, "goroutines are left over", "%d before, now:\n%s", before, stacks)
}

func TestAcceptance114AThousandCancelledWaitsLeaveNothing(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		watches := v.watches()
		holder := v.lock(zksync.NewMutex(calm(v), lockPath))
		waiter := zksync.NewMutex(calm(v), lockPath)
		wait := func() {
			ctx, cancel := context.WithCancel(context.Background())
			a := begin(ctx, waiter)
			v.queued(lockPath, 2)
			cancel()
			require.ErrorIs(t, v.failed(a), context.Canceled)
		}
		for range 10 {
			wait()
		}
		v.queued(lockPath, 1)
		v.quiet()
		goroutines, _ := v.goroutines()
		for range 1000 {
			wait()
		}
		v.queued(lockPath, 1)
		v.quiet()
		v.goroutinesBack(goroutines)
		require.LessOrEqual(t, v.watches(), watches+1, "one live path")
		require.NoError(t, holder.Unlock())
		v.quiet()
		require.LessOrEqual(t, v.watches(), watches, "the event took the last one away")
		require.NoError(t, v.lock(waiter).Unlock())
		v.goroutinesBack(goroutines)
	})
}

func TestAcceptance114DeadlinesAndTryLocksLeaveNothingEither(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ms := v.mutexes(3)
		holder := v.lock(ms[0])
		v.quiet()
		goroutines, _ := v.goroutines()
		for i := range 1000 {
			require.False(t, ms[1+i%2].TryLock())
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%5)*time.Millisecond)
			_, err := ms[1+i%2].LockContext(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		v.quiet()
		zktest.CheckChildren(t, v.srv, lockPath, holder.Path()[len(lockPath)+1:])
		require.LessOrEqual(t, v.srv.Watches(), 2+1, "one live path, two sessions, and its holder's own")
		v.goroutinesBack(goroutines)
		require.NoError(t, holder.Unlock())
		v.quiet()
		require.Zero(t, v.srv.Watches())
	})
}

// A hold that was watched for its loss leaves its watch to the event of its own end.
func TestAcceptance114LeasesThatWereWatchedLeaveNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		m := v.mutexes(1)[0]
		require.NoError(t, v.lock(m).Unlock())
		v.quiet()
		goroutines, _ := v.goroutines()
		for range 1000 {
			l := v.lock(m)
			done, ctx := l.Done(), l.Context()
			require.NoError(t, l.Unlock())
			<-done
			<-ctx.Done()
		}
		v.quiet()
		require.Zero(t, v.srv.Watches())
		v.goroutinesBack(goroutines)
	})
}
