package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	flightPath = "/flights"
	flightKey  = "user 42"
	flightDir  = flightPath + "/user%2042"
	flightLock = flightDir + "/0/lock"
)

func (v *env) flights(n int) []*zkonce.Flight[string] {
	v.t.Helper()
	all := make([]*zkonce.Flight[string], n)
	for i := range all {
		all[i] = zkonce.NewFlight[string](v.session(), flightPath)
	}
	return all
}

// trip is one call of Do.
type trip struct {
	done   chan struct{}
	value  string
	err    error
	shared bool
}

// asks starts a call of Do.
func asks(ctx context.Context, f *zkonce.Flight[string], fn func(context.Context) (string, error)) *trip {
	p := &trip{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.value, p.err, p.shared = f.Do(ctx, flightKey, fn)
	}()
	return p
}

// gets waits for a result.
func (v *env) gets(p *trip, value string, shared bool) {
	v.t.Helper()
	v.awaits(p.done, "Do")
	require.NoError(v.t, p.err)
	require.Equal(v.t, value, p.value)
	require.Equal(v.t, shared, p.shared)
}

// gate is a function under a test's control.
type gate struct {
	began, finish chan struct{}
	value         string
	err           error
	ctx           context.Context
}

func newGate(value string) *gate {
	return &gate{began: make(chan struct{}), finish: make(chan struct{}), value: value}
}

func (g *gate) run(ctx context.Context) (string, error) {
	g.ctx = ctx
	close(g.began)
	<-g.finish
	return g.value, g.err
}

func says(value string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, nil }
}

// never is a function that must not be called.
func (v *env) never(context.Context) (string, error) {
	v.t.Error("it was called")
	return "", errTest
}

func TestWhoAsksWhileOneRunsGetsItsResult(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(4)
		g := newGate("fresh")
		first := asks(context.Background(), fs[0], g.run)
		v.awaits(g.began, "the function")
		require.True(t, zkonce.Lease(g.ctx).Valid())
		var others []*trip
		for i, f := range fs[1:] {
			for range 3 {
				others = append(others, asks(context.Background(), f, v.never))
			}
			v.queued(flightLock, i+2)
		}
		others = append(others, asks(context.Background(), fs[0], v.never))
		v.quiet()
		close(g.finish)
		for _, p := range append(others, first) {
			v.gets(p, "fresh", true)
		}
		v.queued(flightLock, 0)
	})
}

func TestNothingIsKeptForWhoAsksLater(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(3)
		for i := range 6 {
			value, err, shared := fs[i%3].Do(context.Background(), flightKey, says(fmt.Sprint(i)))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), value)
			require.False(t, shared)
		}
		v.queued(flightLock, 0)
	})
}

func TestKeysDoNotMeetAndAnyTextIsAKey(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		f := v.flights(1)[0]
		long := strings.Repeat("/päth", 100)
		keys := []string{"", ".", "..", "...", "/", "a/b", "a%2Fb", "%", "%-", "ключ", "a b", "\x00\xff\u007f", "🐘", "zookeeper", long, long + "x"}
		var all sync.WaitGroup
		running := make(chan struct{}, len(keys))
		proceed := make(chan struct{})
		for _, key := range keys {
			all.Go(func() {
				value, err, shared := f.Do(context.Background(), key, func(context.Context) (string, error) {
					running <- struct{}{}
					<-proceed // until all run: none waits for another one
					return key, nil
				})
				require.NoError(t, err, "%q", key)
				require.Equal(t, key, value)
				require.False(t, shared, "%q", key)
			})
		}
		for range keys {
			<-running
		}
		require.Len(t, v.children(flightPath), len(keys))
		close(proceed)
		all.Wait()
	})
}

func TestAnErrorTravelsAsItsText(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		here := zkonce.NewFlight[string](v.session(zksync.WithName("billing")), flightPath)
		g := newGate("")
		g.err = errTest
		first := asks(context.Background(), here, g.run)
		v.awaits(g.began, "the function")
		token := zkonce.Lease(g.ctx).Token()
		other := asks(context.Background(), v.flights(1)[0], v.never)
		v.queued(flightLock, 2)
		close(g.finish)
		v.awaits(first.done, "Do")
		require.True(t, first.err == errTest, "fn's own error, as it is: %v", first.err)
		require.True(t, first.shared)
		v.awaits(other.done, "Do")
		require.True(t, other.shared)
		var remote *zkonce.RemoteError
		require.ErrorAs(t, other.err, &remote)
		require.NotErrorIs(t, other.err, zksync.ErrMisuse)
		host, _ := os.Hostname()
		require.Equal(t, zksync.Owner{Host: host, PID: os.Getpid(), Name: "billing"}, remote.Owner)
		require.Equal(t, errTest.Error(), remote.Text)
		require.Equal(t, token, remote.Token)
		require.False(t, remote.Panicked)
		require.Contains(t, other.err.Error(), flightDir)
		require.Contains(t, other.err.Error(), "billing on "+host)
		// An error is not kept either.
		v.gets(asks(context.Background(), here, says("better")), "better", false)
	})
}

func TestTheDeathOfTheRunnerOfAFlightLetsTheNextOneRun(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dying := v.session()
		g := newGate("stale")
		first := asks(context.Background(), zkonce.NewFlight[string](dying, flightPath), g.run)
		v.awaits(g.began, "the function")
		fs := v.flights(2)
		second := asks(context.Background(), fs[0], says("fresh"))
		v.queued(flightLock, 2)
		third := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 3)
		heal := v.srv.Partition(dying.ID())
		v.awaits(g.ctx.Done(), "the end of the lease")
		require.ErrorIs(t, context.Cause(g.ctx), zksync.ErrLost)
		v.gets(second, "fresh", true)
		v.gets(third, "fresh", true)
		heal()
		close(g.finish)
		v.awaits(first.done, "Do")
		require.ErrorIs(t, first.err, zksync.ErrLost)
		require.Equal(t, "stale", first.value, "what it has found out may be of use")
		require.False(t, first.shared)
		v.later()
		require.Empty(t, v.children(flightLock))
	})
}

func TestAResultReachesThoseBehindADeadWaiterAtOnce(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		g := newGate("fresh")
		fs := v.flights(2)
		first := asks(context.Background(), fs[0], g.run)
		v.awaits(g.began, "the function")
		dying := v.session()
		cut := asks(context.Background(), zkonce.NewFlight[string](dying, flightPath), says("late"))
		v.queued(flightLock, 2)
		third := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 3)
		time.Sleep(time.Second)
		heal := v.srv.Partition(dying.ID())
		start := time.Now()
		close(g.finish)
		v.gets(first, "fresh", true)
		v.gets(third, "fresh", true)
		v.took(start, 0, "the result")
		time.Sleep(time.Second)
		heal()
		v.gets(cut, "fresh", true)
	})
}

func TestWhoComesAfterTheResultWasWrittenRunsAnew(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		fs := v.flights(3)
		g := newGate("old")
		first := asks(context.Background(), fs[0], g.run)
		v.awaits(g.began, "the function")
		slow := v.session()
		waiter := asks(context.Background(), zkonce.NewFlight[string](slow, flightPath), v.never)
		v.queued(flightLock, 2)
		time.Sleep(time.Second)
		// The result comes, but the waiter cannot be told and stays in the queue.
		heal := v.srv.Partition(slow.ID())
		close(g.finish)
		v.gets(first, "old", true)
		late := asks(context.Background(), fs[1], says("new"))
		v.queued(flightLock, 2)
		time.Sleep(time.Second)
		heal()
		v.gets(waiter, "old", true)
		v.gets(late, "new", false)
		require.Empty(t, v.data(flightDir+"/0"), "a result that nobody waits for any more is removed")
	})
}

func TestAWaiterWhoCannotListenGetsTheResultWhenItIsHisTurn(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		g := newGate("fresh")
		first := asks(context.Background(), fs[0], g.run)
		v.awaits(g.began, "the function")
		waiter := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 2)
		// No time passes in which it could begin to listen.
		close(g.finish)
		v.gets(first, "fresh", true)
		v.gets(waiter, "fresh", true)
	})
}

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
		ctx, cancel := context.WithTimeout(context.Background(), v.span(500*time.Millisecond, 2*time.Second))
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
		v.took(start, v.span(500*time.Millisecond, 2*time.Second), "Do, though the function goes on")
		require.ErrorIs(t, first.err, context.DeadlineExceeded)
		again := asks(context.Background(), fs[0], says("again"))
		v.queued(flightLock, 3)
		close(proceed)
		v.gets(second, "second", true) // again has waited for it
		v.gets(again, "second", true)
		require.ErrorIs(t, cause, context.DeadlineExceeded)
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
		require.Len(t, v.children(flightLock), 1)
		close(g.finish)
		v.gets(first, "fresh", false)
	})
}

func TestAResultThatCannotTravelIsAnErrorForEverybody(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		big := newGate(strings.Repeat("x", 900<<10))
		fs := v.flights(2)
		first := asks(context.Background(), fs[0], big.run)
		v.awaits(big.began, "the function")
		other := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 2)
		close(big.finish)
		for _, p := range []*trip{first, other} {
			v.awaits(p.done, "Do")
			require.ErrorIs(t, p.err, zksync.ErrMisuse)
			require.ErrorContains(t, p.err, "bytes")
		}
		require.Len(t, first.value, 900<<10)
		f := zkonce.NewFlight[func()](v.session(), flightPath)
		_, err, _ := f.Do(context.Background(), "other", func(context.Context) (func(), error) { return func() {}, nil })
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestAResultOfTheGreatestSizeTravels(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		big := newGate(strings.Repeat("x", 800<<10-2))
		fs := v.flights(2)
		first := asks(context.Background(), fs[0], big.run)
		v.awaits(big.began, "the function")
		other := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 2)
		close(big.finish)
		v.gets(first, big.value, true)
		v.gets(other, big.value, true)
	})
}

func TestAResultOfAnotherTypeIsAnError(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		g := newGate("text")
		first := asks(context.Background(), v.flights(1)[0], g.run)
		v.awaits(g.began, "the function")
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err, _ = zkonce.NewFlight[int](v.session(), flightPath).Do(context.Background(), flightKey, nil)
		}()
		v.queued(flightLock, 2)
		close(g.finish)
		v.gets(first, "text", true)
		v.awaits(done, "Do")
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestMisuseOfAFlightIsReportedByTheFirstCall(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		s := v.session()
		for _, f := range []*zkonce.Flight[int]{
			zkonce.NewFlight[int](nil, "/a"), zkonce.NewFlight[int](s, "a"), zkonce.NewFlight[int](s, "/"),
			zkonce.NewFlight[int](s, "/a", zksync.WithTimeout(time.Second)),
		} {
			_, err, _ := f.Do(ctx, "k", nil)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorIs(t, (<-f.DoChan(ctx, "k", nil)).Err, zksync.ErrMisuse)
		}
		require.ErrorIs(t, zkonce.NewFlight[int](s, "/").Forget(ctx, "k"), zksync.ErrMisuse)
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err, _ := zkonce.NewFlight[int](s, "/a").Do(over, "k", nil)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, v.exists("/a"))
		v.put("/b/k", "something else")
		_, err, _ = zkonce.NewFlight[int](s, "/b").Do(ctx, "k", nil)
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestClosingTheSessionEndsAFlight(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		s := v.session()
		runs := zkonce.NewFlight[string](s, flightPath)
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
					require.Contains(t, err.Error(), "flight_test.go", "where it happened")
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
		var remote *zkonce.RemoteError
		require.ErrorAs(t, other.err, &remote)
		require.True(t, remote.Panicked)
		require.Equal(t, errTest.Error(), remote.Text)
		v.gets(asks(context.Background(), fs[0], says("on")), "on", false)
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

func TestDoChanSendsWhatDoReturns(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		f := v.flights(1)[0]
		g := newGate("fresh")
		ctx, cancel := context.WithCancel(context.Background())
		a, b := f.DoChan(context.Background(), flightKey, g.run), f.DoChan(ctx, flightKey, v.never)
		c := asks(context.Background(), f, v.never)
		v.awaits(g.began, "the function")
		v.quiet()
		cancel()
		require.ErrorIs(t, (<-b).Err, context.Canceled)
		close(g.finish)
		require.Equal(t, zkonce.Result[string]{Val: "fresh", Shared: true}, <-a)
		v.gets(c, "fresh", true)
		r := <-f.DoChan(context.Background(), flightKey, func(context.Context) (string, error) { return "", errTest })
		require.True(t, errors.Is(r.Err, errTest))
		require.False(t, r.Shared)
	})
}

// panicsWithGoexit is what a test's own FailNow does.
func panicsWithGoexit() { runtime.Goexit() }

// The contender of his process queued before the result was written, but he asked after that.
func TestWhoJoinsAContenderAfterTheResultWasWrittenDoesNotGetIt(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		g := newGate("old")
		first := asks(context.Background(), fs[0], g.run)
		v.awaits(g.began, "the function")
		dying := v.session()
		cut := asks(context.Background(), zkonce.NewFlight[string](dying, flightPath), v.never)
		v.queued(flightLock, 2)
		heal := v.srv.Partition(dying.ID()) // it stays in the queue, ahead of the next one
		waiter := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 3)
		close(g.finish) // before the waiter listens
		v.gets(first, "old", true)
		time.Sleep(time.Second)
		late := asks(context.Background(), fs[1], says("new"))
		time.Sleep(time.Second)
		heal()
		v.gets(cut, "old", true)
		v.gets(waiter, "old", true)
		v.gets(late, "new", false)
	})
}
