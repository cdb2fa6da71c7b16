package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheDeathOfTheRunnerOfAFlightLetsTheNextOneRun(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dying := v.session()
		g := newGate("stale")
		first := asks(context.Background(), zkflight.New[string](dying, flightPath), g.run)
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
		cut := asks(context.Background(), zkflight.New[string](dying, flightPath), says("late"))
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
		waiter := asks(context.Background(), zkflight.New[string](slow, flightPath), v.never)
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
		require.Empty(t, v.data(flightDir), "a result that nobody waits for any more is removed")
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

// The contender of his process queued before the result was written, but he asked after that.
func TestWhoJoinsAContenderAfterTheResultWasWrittenDoesNotGetIt(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		fs := v.flights(2)
		g := newGate("old")
		first := asks(context.Background(), fs[0], g.run)
		v.awaits(g.began, "the function")
		dying := v.session()
		cut := asks(context.Background(), zkflight.New[string](dying, flightPath), v.never)
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

// While it is asked whether those who have joined are in time, the result is written, and somebody
// joins: whether he is in time has not been asked.
func TestWhoJoinsAWaiterWhileOthersAreAdmittedIsNotAdmittedWithThem(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		const ms = time.Millisecond
		g := newGate("old")
		first := asks(context.Background(), v.flights(1)[0], g.run)
		v.awaits(g.began, "the function")
		far := v.session()
		f := zkflight.New[string](far, flightPath)
		waiters := []*trip{asks(context.Background(), f, v.never)}
		v.queued(flightLock, 2)
		time.Sleep(time.Second)
		v.srv.Delay(far.ID(), 50*ms, 50*ms)
		waiters = append(waiters, asks(context.Background(), f, v.never))
		time.Sleep(160 * ms) // the read has been answered, and the answer is on its way
		close(g.finish)
		v.gets(first, "old", true)
		late := asks(context.Background(), f, says("new"))
		for _, p := range waiters {
			v.gets(p, "old", true)
		}
		v.gets(late, "new", false)
	})
}

// What was told in a session that has ended says nothing of what the next one will be told.
func TestAResultThatWasAnnouncedInASessionThatEndedKeepsNobodyWaiting(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		running, waiting := v.session(), v.session()
		g := newGate("old")
		first := asks(context.Background(), zkflight.New[string](running, flightPath), g.run)
		v.awaits(g.began, "the function")
		// The waiter is told of the result before it has looked at what was there when it came.
		v.srv.Intercept(zktest.On(zktest.GetData, flightDir).Of(waiting.ID()).Nth(2).Hold())
		unlock := v.srv.Intercept(zktest.On(zktest.Delete, flightLock+"/*").Of(running.ID()).Hold())
		second := asks(context.Background(), zkflight.New[string](waiting, flightPath), says("new"))
		v.queued(flightLock, 2)
		time.Sleep(time.Second)
		close(g.finish)
		time.Sleep(time.Second)
		v.srv.Expire(waiting.ID())
		time.Sleep(time.Second)
		unlock.Release()
		v.gets(first, "old", true)
		v.gets(second, "new", false)
	})
}
