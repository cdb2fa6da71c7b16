package latch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

// Done in a loop over a select is called as often as anything else happens.
func TestCallsOfDoneShareOneWaitOfTheirLatch(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		ls := latches(v, 2, 1)
		l := ls[0]
		made(v, 1)
		goroutines := v.Goroutines()
		var before []<-chan struct{}
		v.Costs(2, func() {
			for range 1000 {
				before = append(before, l.Done())
			}
		}, "those of one wait")
		v.GoroutinesBack(goroutines)
		require.LessOrEqual(t, v.Server.Watches(), 1)

		require.NoError(t, ls[1].CountDown(ctx))
		v.Quiet()
		for _, done := range append(before, l.Done()) {
			require.True(t, proving.IsClosed(done))
		}
		v.GoroutinesBack(goroutines)
	})
}

// An object that has found its latch open sends nothing more. Its path may be that of another latch by then.
func TestDoneOfAnOpenLatchAsksNobodyAndOpensNoLaterOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := v.Session()
		l := zklatch.New(s, proving.LatchPath, 1)
		require.NoError(t, l.CountDown(ctx))
		v.Costs(0, func() { require.True(t, proving.IsClosed(l.Done())) }, "of an open latch")

		v.Server.DeleteAll(proving.LatchPath)
		later := zklatch.New(s, proving.LatchPath, 1)
		done := later.Done()
		v.Quiet()
		require.True(t, proving.IsClosed(l.Done()))
		require.False(t, proving.IsClosed(done), "the later latch has counted nothing")
		require.NoError(t, later.CountDown(ctx))
		require.True(t, proving.IsClosed(done))
	})
}

// undecided are n latches at paths of their own, whose Done was called.
func undecided(s *zksync.Session, n int) (ls []*zklatch.Latch, all []<-chan struct{}) {
	for i := range n {
		l := zklatch.New(s, fmt.Sprintf("/latches/%d", i), 1)
		ls, all = append(ls, l), append(all, l.Done())
	}
	return ls, all
}

func TestUndecidedLatchesKeepNoGoroutine(t *testing.T) {
	const n = 1000
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Session()
		v.Quiet()
		before := v.Goroutines()
		ls, done := undecided(s, n)
		v.Quiet()
		require.Equal(t, before, v.Goroutines())
		require.Equal(t, n, v.Server.Watches())

		again := zklatch.New(s, "/latches/7", 1)
		v.Costs(0, func() {
			for range 100 {
				require.True(t, again.Done() == done[7] && ls[7].Done() == done[7], "all objects share a wait")
				zklatch.New(s, "/latches/8", 1).Done()
			}
			v.Quiet()
		})
		v.Costs(0, func() { time.Sleep(s.Timeout() / 10) }, "nor is anything asked")

		for name, happen := range map[string]func(){
			"quiet": func() {}, "disconnect": func() { v.Server.Disconnect(s.ID()) },
			"expire": func() { v.Server.Expire(s.ID()) }, "restart": v.Server.Restart,
		} {
			happen()
			v.Later()
			require.LessOrEqual(t, v.Goroutines(), before+2, name)
			require.Equal(t, n, v.Server.Watches(), name)
		}
		allow := v.Server.Refuse()
		v.Server.Disconnect(s.ID())
		time.Sleep(s.Timeout() / 3)
		require.LessOrEqual(t, v.Goroutines(), before+20, "a few wait for a connection")
		allow()
		v.Later()
		heal := v.Server.Partition(s.ID())
		time.Sleep(2 * s.Timeout())
		require.LessOrEqual(t, v.Goroutines(), before+20, "a few wait for a connection")
		for i := range n {
			require.NoError(t, zklatch.New(other, fmt.Sprintf("/latches/%d", i), 1).CountDown(t.Context()))
		}
		heal()
		for i, d := range done {
			v.Awaits(d, "Done")
			v.Costs(1, func() { require.NoError(t, ls[i].Wait(t.Context())) }, "it watches whether the latch is destroyed")
			v.Costs(0, func() { require.NoError(t, ls[i].Wait(t.Context())) })
		}
		require.True(t, proving.IsClosed(again.Done()))
		v.Costs(2, func() { require.NoError(t, again.Wait(t.Context())) }, "a sync: another object has heard it, perhaps in an earlier session")
		v.Costs(0, func() { require.NoError(t, again.Wait(t.Context())) })
		require.Equal(t, n, v.Server.Watches(), "one of each that an object knows open")
		require.NoError(t, s.Close())
		v.Quiet()
		require.Zero(t, v.Server.Watches())
	})
}

// The event itself says that the latch is open.
func TestAnOpeningClosesDoneForNoRequestWhileOthersAreUndecided(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		s, other := proving.Calm(v), proving.Calm(v)
		_, done := undecided(s, 20)
		v.Quiet()
		l := zklatch.New(other, "/latches/3", 1)
		v.Costs(2, func() {
			require.NoError(t, l.CountDown(t.Context()))
			v.Awaits(done[3], "Done")
		}, "the last event")
		for i, d := range done {
			require.Equal(t, i == 3, proving.IsClosed(d))
		}
	})
}

func TestNothingIsLeftOfUndecidedLatchesAfterClose(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		before := v.Goroutines()
		s := v.Session()
		ls, done := undecided(s, 100)
		v.Quiet()
		require.NoError(t, s.Close())
		v.GoroutinesBack(before)
		require.Zero(t, v.Server.Watches())
		time.Sleep(2 * s.Timeout())
		for i, d := range done {
			require.False(t, proving.IsClosed(d))
			require.True(t, ls[i].Done() == d)
		}
		v.GoroutinesBack(before)
	})
}

// The latch is removed and made again by others: what was returned before hears of the next wait.
func TestDoneGoesOnAfterTheNodesOfALatchWereRemoved(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ls := latches(v, 2, 1)
		done := ls[0].Done()
		v.Quiet()
		v.Remove(proving.LatchPath + "/closed-of-1")
		v.Later()
		v.Costs(0, v.Later, "the wait has ended")
		require.False(t, proving.IsClosed(done))
		v.Server.DeleteAll(proving.LatchPath)
		require.True(t, ls[0].Done() == done)
		v.Quiet()
		require.NoError(t, ls[1].CountDown(t.Context()))
		v.Awaits(done, "Done")
	})
}

// Nobody waits any more, as the nodes were removed; but the next latch is opened by the object itself.
func TestDoneIsClosedAsSoonAsACallKnowsThatTheLatchIsOpen(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := latches(v, 1, 1)[0]
		done := l.Done()
		v.Quiet()
		v.Server.DeleteAll(proving.LatchPath)
		v.Later()
		require.NoError(t, l.CountDown(t.Context()))
		require.True(t, proving.IsClosed(done))
	})
}

// Whoever counted the last event died before it opened the latch.
func TestDoneOpensTheLatchWhoseLastCounterDied(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		made(v, 1)
		v.Put(proving.LatchPath+"/counts/somebody-count", "")
		start, done := time.Now(), zklatch.New(s, proving.LatchPath, 1).Done()
		v.Awaits(done, "Done")
		require.Equal(t, s.Timeout(), time.Since(start))
	})
}

func TestEveryFaultLeavesDoneSound(t *testing.T) {
	play := func(v *proving.Env, name string, ls []*zklatch.Latch) {
		one, two := ls[0].Done(), ls[1].Done()
		time.Sleep(time.Second)
		require.NoError(v.T, ls[2].CountDown(context.Background()), name)
		v.Awaits(one, name)
		v.Awaits(two, name)
	}
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ls := latches(v, 3, 1)
		return func(name string) { play(v, name, ls) }
	})
	for what, happen := range map[string]func(*proving.Env, int64){"disconnect": proving.Disconnects, "expire": proving.Expires} {
		proving.EveryTrouble(t, what, happen, func(t *testing.T, v *proving.Env) func(string, func()) {
			ls := latches(v, 3, 1)
			return func(name string, _ func()) { play(v, name, ls) }
		})
	}
}
