package flight_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheDeathOfTheRunnerOfAFlightLetsTheNextOneRun(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dying := v.Session()
		g, first := runs(v, zkflight.New[string](dying, flightPath), "stale")
		fs := flights(v, 2)
		second := asks(context.Background(), fs[0], says("fresh"))
		v.Queued(flightLock, 2)
		third := asks(context.Background(), fs[1], v.Never)
		v.Queued(flightLock, 3)
		heal := v.Server.Partition(dying.ID())
		v.Awaits(g.ctx.Done(), "the end of the lease")
		require.ErrorIs(t, context.Cause(g.ctx), zksync.ErrLost)
		gets(v, second, "fresh", true)
		gets(v, third, "fresh", true)
		heal()
		close(g.finish)
		v.Awaits(first.done, "Do")
		require.ErrorIs(t, first.err, zksync.ErrLost)
		require.Equal(t, "stale", first.value, "what it has found out may be of use")
		require.False(t, first.shared)
		v.Later()
		require.Empty(t, v.Children(flightLock))
	})
}

func TestAResultReachesThoseBehindADeadWaiterAtOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 2)
		g, first := runs(v, fs[0], "fresh")
		dying := v.Session()
		cut := asks(context.Background(), zkflight.New[string](dying, flightPath), says("late"))
		v.Queued(flightLock, 2)
		third := asks(context.Background(), fs[1], v.Never)
		v.Queued(flightLock, 3)
		time.Sleep(time.Second)
		heal := v.Server.Partition(dying.ID())
		start := time.Now()
		close(g.finish)
		gets(v, first, "fresh", true)
		gets(v, third, "fresh", true)
		v.Took(start, 0, "the result")
		time.Sleep(time.Second)
		heal()
		gets(v, cut, "fresh", true)
	})
}

// A request and its answer take 4 ms. The runner queues, reads the key's node, tells that the run is over, and writes the result,
// which is there at 14 ms. The waiters queue 1 ms after it. They are told at 16 ms, read the result, and leave.
func TestAllWhoWaitHaveTheResultOfAShortRunAtTheSameTime(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const ms = time.Millisecond
		sessions := make([]*zksync.Session, 5)
		for i := range sessions {
			sessions[i] = v.Session()
		}
		gets(v, asks(context.Background(), zkflight.New[string](sessions[0], flightPath), says("first")), "first", false)
		for _, s := range sessions {
			v.Server.Delay(s.ID(), 2*ms, 2*ms)
		}
		start := time.Now()
		runner := asks(context.Background(), zkflight.New[string](sessions[0], flightPath), says("x"))
		time.Sleep(ms)
		var waiters []*trip
		for _, s := range sessions[1:] {
			waiters = append(waiters, asks(context.Background(), zkflight.New[string](s, flightPath), v.Never))
		}
		for _, p := range waiters {
			gets(v, p, "x", true)
			v.Took(start, 24*ms, "the result")
		}
		gets(v, runner, "x", true)
	})
}

func TestWhoComesAfterTheResultWasWrittenRunsAnew(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 3)
		g, first := runs(v, fs[0], "old")
		slow := v.Session()
		waiter := asks(context.Background(), zkflight.New[string](slow, flightPath), v.Never)
		v.Queued(flightLock, 2)
		time.Sleep(time.Second)
		// The result comes, but the waiter cannot be told and stays in the queue.
		heal := v.Server.Partition(slow.ID())
		close(g.finish)
		gets(v, first, "old", true)
		late := asks(context.Background(), fs[1], says("new"))
		v.Queued(flightLock, 2)
		time.Sleep(time.Second)
		heal()
		gets(v, waiter, "old", true)
		gets(v, late, "new", false)
		require.Empty(t, v.Data(flightDir), "a result that nobody waits for any more is removed")
	})
}

func TestAWaiterWhoCannotListenGetsTheResultWhenItIsHisTurn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g, first := runs(v, flights(v, 1)[0], "fresh")
		deaf := v.Session()
		refused := v.Server.Intercept(zktest.On(zktest.GetData, flightDir).Of(deaf.ID()).Nth(1).Error(zktest.CodeNoAuth))
		waiter := asks(context.Background(), zkflight.New[string](deaf, flightPath), v.Never)
		v.Queued(flightLock, 2)
		v.Quiet()
		require.Equal(t, 1, refused.Fired())
		close(g.finish)
		gets(v, first, "fresh", true)
		gets(v, waiter, "fresh", true)
	})
}

// The contender of his process queued before the result was written, but he asked after that.
func TestWhoJoinsAContenderAfterTheResultWasWrittenDoesNotGetIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		deaf := v.Session()
		f := zkflight.New[string](deaf, flightPath)
		g, first := runs(v, flights(v, 1)[0], "old")
		dying := v.Session()
		cut := asks(context.Background(), zkflight.New[string](dying, flightPath), v.Never)
		v.Queued(flightLock, 2)
		heal := v.Server.Partition(dying.ID()) // it stays in the queue, ahead of the next one
		v.Server.Intercept(zktest.On(zktest.GetData, flightDir).Of(deaf.ID()).Nth(1).Error(zktest.CodeNoAuth))
		waiter := asks(context.Background(), f, v.Never) // it cannot listen
		v.Queued(flightLock, 3)
		close(g.finish)
		gets(v, first, "old", true)
		time.Sleep(time.Second)
		late := asks(context.Background(), f, says("new"))
		time.Sleep(time.Second)
		heal()
		gets(v, cut, "old", true)
		gets(v, waiter, "old", true)
		gets(v, late, "new", false)
	})
}

// While it is asked whether those who have joined are in time, the result is written, and somebody
// joins: whether he is in time has not been asked.
func TestWhoJoinsAWaiterWhileOthersAreAdmittedIsNotAdmittedWithThem(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const ms = time.Millisecond
		g, first := runs(v, flights(v, 1)[0], "old")
		far := v.Session()
		f := zkflight.New[string](far, flightPath)
		waiters := []*trip{asks(context.Background(), f, v.Never)}
		v.Queued(flightLock, 2)
		time.Sleep(time.Second)
		v.Server.Delay(far.ID(), 50*ms, 50*ms)
		waiters = append(waiters, asks(context.Background(), f, v.Never))
		time.Sleep(160 * ms) // the read has been answered, and the answer is on its way
		close(g.finish)
		gets(v, first, "old", true)
		late := asks(context.Background(), f, says("new"))
		for _, p := range waiters {
			gets(v, p, "old", true)
		}
		gets(v, late, "new", false)
	})
}

// What was told in a session that has ended says nothing of what the next one will be told. The result is for who asked
// before it was written, in whichever session.
func TestAResultThatWasAnnouncedInASessionThatEndedKeepsNobodyWaiting(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		running, waiting := v.Session(), v.Session()
		g, first := runs(v, zkflight.New[string](running, flightPath), "old")
		// The waiter is told of the result before it has looked at what was there when it came.
		v.Server.Intercept(zktest.On(zktest.GetData, flightDir).Of(waiting.ID()).Nth(2).Hold())
		unlock := v.Server.Intercept(zktest.On(zktest.Delete, flightLock+"/*").Of(running.ID()).Hold())
		second := asks(context.Background(), zkflight.New[string](waiting, flightPath), v.Never)
		v.Queued(flightLock, 2)
		time.Sleep(time.Second)
		close(g.finish)
		time.Sleep(time.Second)
		v.Server.Expire(waiting.ID())
		gets(v, second, "old", true)
		unlock.Release()
		gets(v, first, "old", true)
	})
}

// Nobody queues any more when the waiter comes back, so it is granted at once, with a node that is younger than the result.
func TestAWaiterThatComesBackAloneHasTheResultOfTheRunForWhichItHadWaited(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		waiting := v.Session()
		g, first := runs(v, zkflight.New[string](v.Session(), flightPath), "old")
		second := asks(context.Background(), zkflight.New[string](waiting, flightPath), v.Never)
		v.Queued(flightLock, 2)
		time.Sleep(time.Second)
		id := waiting.ID()
		heal := v.Server.Refuse()
		v.Server.Disconnect(id)
		close(g.finish)
		gets(v, first, "old", true)
		v.Server.Expire(id)
		time.Sleep(time.Second)
		heal()
		gets(v, second, "old", true)
	})
}
