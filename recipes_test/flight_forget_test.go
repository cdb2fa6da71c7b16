package recipes_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Not those who asked before elsewhere, not who joins where the old run goes on or is waited for, and
// not who asks anew.
func TestAfterForgetNobodyElsewhereGetsTheResultOfTheOldRun(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		fs := v.flights(3)
		old, fresh := newGate("old"), newGate("new")
		first := asks(context.Background(), fs[0], old.run)
		v.awaits(old.began, "the function")
		later := []*trip{asks(context.Background(), fs[1], fresh.run)}
		v.queued(flightLock, 2)
		<-time.After(time.Second) // it listens
		v.quiet()
		require.NoError(t, fs[2].Forget(context.Background(), flightKey))
		for i := range 2 {
			later = append(later, asks(context.Background(), fs[i], v.never), asks(context.Background(), fs[i], v.never))
		}
		v.quiet()
		later = append(later, asks(context.Background(), fs[2], v.never))
		v.queued(flightLock, 3)
		v.quiet()
		require.True(t, old.ctx.Err() == nil, "the old run goes on")
		require.False(t, isClosed(fresh.began), "there is one run at a time")
		close(old.finish)
		v.gets(first, "old", true)
		v.awaits(fresh.began, "the function of the next in the queue")
		require.Positive(t, zkflight.Lease(fresh.ctx).Token().Compare(zkflight.Lease(old.ctx).Token()))
		v.queued(flightLock, 3) // with those who had joined the old run
		v.quiet()
		close(fresh.finish)
		for _, p := range later {
			v.gets(p, "new", true)
		}
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
		second := asks(context.Background(), f, says("new"))
		v.queued(flightLock, 2)
		require.NoError(t, f.Forget(context.Background(), flightKey), "again")
		third := asks(context.Background(), f, v.never)
		v.queued(flightLock, 3)
		close(old.finish)
		v.gets(first, "old", false)
		v.gets(second, "new", true) // that run began after the last Forget
		v.gets(third, "new", true)
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

func TestAfterForgetAndADeathThereIsOneRunAgain(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dying := v.session()
		old, fresh := newGate("old"), newGate("new")
		first := asks(context.Background(), zkflight.New[string](dying, flightPath), old.run)
		v.awaits(old.began, "the function")
		fs := v.flights(2)
		waited := asks(context.Background(), fs[0], fresh.run)
		v.queued(flightLock, 2)
		time.Sleep(time.Second)
		require.NoError(t, fs[1].Forget(context.Background(), flightKey))
		second := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 3)
		v.srv.Expire(dying.ID())
		v.awaits(fresh.began, "the function")
		time.Sleep(time.Second)
		close(fresh.finish)
		v.gets(waited, "new", true)
		v.gets(second, "new", true)
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
		close(g.finish)
		v.gets(first, "old", false)
		v.later()
		v.later()
		v.later()
		v.later()
		require.False(t, v.exists(flightPath), v.srv.Tree())
		v.gets(asks(context.Background(), f, says("on")), "on", false)
		require.True(t, v.exists(flightLock))
	})
}

// The process in which the old run ends has not heard of the Forget, or could not have.
func TestARunThatWasForgottenUnheardIsForNobodyWhoAskedSince(t *testing.T) {
	for _, cut := range []bool{false, true} {
		inProcess(t, func(t *testing.T, v *env) {
			s := v.session()
			f, other := zkflight.New[string](s, flightPath), v.flights(1)[0]
			old := newGate("old")
			first := asks(context.Background(), f, old.run)
			v.awaits(old.began, "the function")
			heal := func() {}
			if cut {
				heal = v.srv.Partition(s.ID())
			}
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
			if slices.Contains(q.Paths, flightDir) && !slices.Contains(q.Paths, flightLock) {
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
