package flight_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Not those who asked before elsewhere, not who joins where the old run goes on or is waited for, and
// not for a caller that asks again.
func TestAfterForgetNobodyElsewhereGetsTheResultOfTheOldRun(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 3)
		old, fresh := newGate("old"), newGate("new")
		first := asks(context.Background(), fs[0], old.run)
		v.Awaits(old.began, "the function")
		later := []*trip{asks(context.Background(), fs[1], fresh.run)}
		v.Queued(flightLock, 2)
		<-time.After(time.Second) // it listens
		v.Quiet()
		require.NoError(t, fs[2].Forget(context.Background(), flightKey))
		for i := range 2 {
			later = append(later, asks(context.Background(), fs[i], v.Never), asks(context.Background(), fs[i], v.Never))
		}
		v.Quiet()
		later = append(later, asks(context.Background(), fs[2], v.Never))
		v.Queued(flightLock, 3)
		v.Quiet()
		require.True(t, old.ctx.Err() == nil, "the old run goes on")
		require.False(t, proving.IsClosed(fresh.began), "there is one run at a time")
		close(old.finish)
		gets(v, first, "old", true)
		v.Awaits(fresh.began, "the function of the next in the queue")
		require.Positive(t, zksync.LeaseFrom(fresh.ctx).Token().Compare(zksync.LeaseFrom(old.ctx).Token()))
		v.Queued(flightLock, 3) // with those who had joined the old run
		admitted(v)
		close(fresh.finish)
		for _, p := range later {
			gets(v, p, "new", true)
		}
		gets(v, asks(context.Background(), fs[0], says("on")), "on", false)
	})
}

func TestForgetIsForThisProcessToo(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		f := flights(v, 1)[0]
		old := newGate("old")
		first := asks(context.Background(), f, old.run)
		v.Awaits(old.began, "the function")
		require.NoError(t, f.Forget(context.Background(), flightKey))
		second := asks(context.Background(), f, says("new"))
		v.Queued(flightLock, 2)
		require.NoError(t, f.Forget(context.Background(), flightKey), "again")
		third := asks(context.Background(), f, v.Never)
		v.Queued(flightLock, 3)
		close(old.finish)
		gets(v, first, "old", false)
		gets(v, second, "new", true) // that run began after the last Forget
		gets(v, third, "new", true)
	})
}

func TestForgettingWhatDoesNotRunChangesNothing(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		f := flights(v, 1)[0]
		require.NoError(t, f.Forget(context.Background(), flightKey))
		require.False(t, v.Exists(flightPath))
		gets(v, asks(context.Background(), f, says("a")), "a", false)
		require.NoError(t, f.Forget(context.Background(), flightKey))
		require.Empty(t, v.Data(flightDir))
	})
}

func TestAfterForgetAndADeathThereIsOneRunAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dying := v.Session()
		old, fresh := newGate("old"), newGate("new")
		first := asks(context.Background(), zkflight.New[string](dying, flightPath), old.run)
		v.Awaits(old.began, "the function")
		fs := flights(v, 2)
		waited := asks(context.Background(), fs[0], fresh.run)
		v.Queued(flightLock, 2)
		time.Sleep(time.Second)
		require.NoError(t, fs[1].Forget(context.Background(), flightKey))
		second := asks(context.Background(), fs[1], v.Never)
		v.Queued(flightLock, 3)
		v.Server.Expire(dying.ID())
		v.Awaits(fresh.began, "the function")
		time.Sleep(time.Second)
		close(fresh.finish)
		gets(v, waited, "new", true)
		gets(v, second, "new", true)
		close(old.finish)
		v.Awaits(first.done, "Do")
		require.ErrorIs(t, first.err, zksync.ErrLost)
	})
}

func TestForgetObeysItsDeadline(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		f := zkflight.New[string](s, flightPath)
		heal := v.Server.Partition(s.ID())
		defer heal()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, f.Forget(ctx, flightKey), context.DeadlineExceeded)
		v.Took(start, time.Second, "Forget")
	})
}

// Once all have left, everything begins again.
func TestAForgottenKeyIsReapedLikeAnyOther(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		f := flights(v, 1)[0]
		g, first := runs(v, f, "old")
		require.NoError(t, f.Forget(context.Background(), flightKey))
		close(g.finish)
		gets(v, first, "old", false)
		v.Later()
		v.Later()
		v.Later()
		v.Later()
		require.False(t, v.Exists(flightPath), v.Server.Tree())
		gets(v, asks(context.Background(), f, says("on")), "on", false)
		require.True(t, v.Exists(flightLock))
	})
}

// The process in which the old run ends has not heard of the Forget, or could not have.
func TestARunThatWasForgottenUnheardIsForNobodyWhoAskedSince(t *testing.T) {
	for _, cut := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			f, other := zkflight.New[string](s, flightPath), flights(v, 1)[0]
			old := newGate("old")
			first := asks(context.Background(), f, old.run)
			v.Awaits(old.began, "the function")
			heal := func() {}
			if cut {
				heal = v.Server.Partition(s.ID())
			}
			require.NoError(t, other.Forget(context.Background(), flightKey))
			time.Sleep(100 * time.Millisecond)
			late := asks(context.Background(), f, says("new"))
			time.Sleep(100 * time.Millisecond)
			close(old.finish)
			time.Sleep(100 * time.Millisecond)
			heal()
			gets(v, first, "old", true)
			gets(v, late, "new", false)
		})
	}
}

// The process that runs does not know yet that its result has been written, and others have it.
func TestAResultThatOthersHaveIsForNobodyWhoAsksWhereItCameFrom(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		f, other := zkflight.New[string](s, flightPath), flights(v, 1)[0]
		g, first := runs(v, f, "old")
		waiter := asks(context.Background(), other, v.Never)
		v.Queued(flightLock, 2)
		time.Sleep(100 * time.Millisecond)
		var heal func()
		var drop sync.Once
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if slices.Contains(q.Paths, flightDir) && !slices.Contains(q.Paths, flightLock) {
				drop.Do(func() { heal = v.Server.DropReplies(s.ID()) })
			}
			return zktest.Verdict{}
		})
		close(g.finish)
		gets(v, waiter, "old", true)
		require.False(t, proving.IsClosed(first.done))
		time.Sleep(100 * time.Millisecond)
		late := asks(context.Background(), f, says("new"))
		time.Sleep(100 * time.Millisecond)
		heal()
		gets(v, first, "old", true)
		gets(v, late, "new", false)
	})
}
