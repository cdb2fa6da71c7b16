package recipes_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const flightForgotten = flightDir + "/1/lock"

func TestAfterForgetNobodyWaitsForTheOldRun(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(3)
		old := newGate("old")
		first := asks(context.Background(), fs[0], old.run)
		v.awaits(old.began, "the function")
		waited := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 2)
		<-time.After(time.Second) // it listens
		v.quiet()
		require.NoError(t, fs[2].Forget(context.Background(), flightKey))
		// Everywhere, also where the old run goes on.
		fresh := newGate("new")
		second := asks(context.Background(), fs[2], fresh.run)
		v.awaits(fresh.began, "the function, although the old one still runs")
		require.Positive(t, zkflight.Lease(fresh.ctx).Token().Compare(zkflight.Lease(old.ctx).Token()))
		third := []*trip{asks(context.Background(), zkflight.New[string](v.session(), flightPath), v.never)}
		v.queued(flightForgotten, 2)
		for i := range 2 { // where the old run goes on, and where it is waited for
			third = append(third, asks(context.Background(), fs[i], v.never), asks(context.Background(), fs[i], v.never))
			v.queued(flightForgotten, 3+i)
		}
		v.quiet()
		close(fresh.finish)
		v.gets(second, "new", true)
		for _, p := range third {
			v.gets(p, "new", true)
		}
		require.True(t, old.ctx.Err() == nil, "the old run goes on")
		close(old.finish)
		v.gets(first, "old", true)
		v.gets(waited, "old", true)
		v.gets(asks(context.Background(), fs[0], says("on")), "on", false)
	})
}

func TestForgetIsForThisProcessToo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		f := v.flights(1)[0]
		old := newGate("old")
		first := asks(context.Background(), f, old.run)
		v.awaits(old.began, "the function")
		require.NoError(t, f.Forget(context.Background(), flightKey))
		v.gets(asks(context.Background(), f, says("new")), "new", false)
		require.NoError(t, f.Forget(context.Background(), flightKey), "again")
		v.gets(asks(context.Background(), f, says("newer")), "newer", false)
		close(old.finish)
		v.gets(first, "old", false)
	})
}

func TestForgettingWhatDoesNotRunChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		f := v.flights(1)[0]
		require.NoError(t, f.Forget(context.Background(), flightKey))
		require.False(t, v.exists(flightPath))
		v.gets(asks(context.Background(), f, says("a")), "a", false)
		require.NoError(t, f.Forget(context.Background(), flightKey))
		require.Empty(t, v.data(flightDir))
	})
}

// A waiter who queued before the key was forgotten, and is to run because the old runner
// has died, shares with those who came after.
func TestAfterForgetAndADeathThereIsOneRunAgain(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dying := v.session()
		old := newGate("old")
		first := asks(context.Background(), zkflight.New[string](dying, flightPath), old.run)
		v.awaits(old.began, "the function")
		fs := v.flights(2)
		waited := asks(context.Background(), fs[0], v.never)
		v.queued(flightLock, 2)
		time.Sleep(time.Second)
		require.NoError(t, fs[1].Forget(context.Background(), flightKey))
		fresh := newGate("new")
		second := asks(context.Background(), fs[1], fresh.run)
		v.awaits(fresh.began, "the function")
		v.srv.Expire(dying.ID())
		v.queued(flightForgotten, 2)
		time.Sleep(time.Second)
		close(fresh.finish)
		v.gets(second, "new", true)
		v.gets(waited, "new", true)
		close(old.finish)
		v.awaits(first.done, "Do")
		require.ErrorIs(t, first.err, zksync.ErrLost)
	})
}

func TestForgetObeysItsDeadline(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		f := zkflight.New[string](s, flightPath)
		heal := v.srv.Partition(s.ID())
		defer heal()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, f.Forget(ctx, flightKey), context.DeadlineExceeded)
		v.took(start, time.Second, "Forget")
	})
}

// Once everybody has left, all begins anew.
func TestAForgottenKeyIsReapedLikeAnyOther(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		f := v.flights(1)[0]
		g := newGate("old")
		first := asks(context.Background(), f, g.run)
		v.awaits(g.began, "the function")
		require.NoError(t, f.Forget(context.Background(), flightKey))
		var runs atomic.Int32
		for range 3 {
			v.gets(asks(context.Background(), f, func(context.Context) (string, error) { runs.Add(1); return "new", nil }), "new", false)
		}
		close(g.finish)
		v.gets(first, "old", false)
		v.later()
		v.later()
		v.later()
		v.later()
		require.False(t, v.exists(flightPath), v.srv.Tree())
		v.gets(asks(context.Background(), f, says("on")), "on", false)
		require.EqualValues(t, 3, runs.Load())
		require.True(t, v.exists(flightLock))
	})
}

// The process in which the old run ends has not heard of the Forget.
func TestARunThatWasForgottenUnheardIsForNobodyWhoAskedSince(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		f, other := zkflight.New[string](s, flightPath), v.flights(1)[0]
		old := newGate("old")
		first := asks(context.Background(), f, old.run)
		v.awaits(old.began, "the function")
		heal := v.srv.Partition(s.ID())
		require.NoError(t, other.Forget(context.Background(), flightKey))
		time.Sleep(100 * time.Millisecond)
		late := asks(context.Background(), f, says("new"))
		time.Sleep(100 * time.Millisecond)
		close(old.finish)
		time.Sleep(100 * time.Millisecond)
		heal()
		v.gets(first, "old", true)
		v.gets(late, "new", false)
	})
}

// The process that runs does not know yet that its result has been written, and others have it.
func TestAResultThatOthersHaveIsForNobodyWhoAsksWhereItCameFrom(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		f, other := zkflight.New[string](s, flightPath), v.flights(1)[0]
		g := newGate("old")
		first := asks(context.Background(), f, g.run)
		v.awaits(g.began, "the function")
		waiter := asks(context.Background(), other, v.never)
		v.queued(flightLock, 2)
		time.Sleep(100 * time.Millisecond)
		var heal func()
		var drop sync.Once
		v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if slices.Contains(q.Paths, flightDir+"/0") {
				drop.Do(func() { heal = v.srv.DropReplies(s.ID()) })
			}
			return zktest.Verdict{}
		})
		close(g.finish)
		v.gets(waiter, "old", true)
		require.False(t, isClosed(first.done))
		time.Sleep(100 * time.Millisecond)
		late := asks(context.Background(), f, says("new"))
		time.Sleep(100 * time.Millisecond)
		heal()
		v.gets(first, "old", true)
		v.gets(late, "new", false)
	})
}
