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

func latches(v *proving.Env, n, total int, opts ...zksync.Option) []*zklatch.Latch {
	v.T.Helper()
	all := make([]*zklatch.Latch, n)
	for i := range all {
		all[i] = zklatch.New(v.Session(), proving.LatchPath, total, opts...)
	}
	return all
}

// made makes the nodes of a latch.
func made(v *proving.Env, total int) {
	v.Put(proving.LatchPath, fmt.Sprintf(`{"total":%d}`, total))
	v.Put(fmt.Sprintf("%s/closed-of-%d", proving.LatchPath, total), "")
	v.Put(proving.LatchPath+"/counts", "")
}

func TestAcceptance047And048ALatchOpensWhenAllHaveCounted(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ls := latches(v, 3, 3)
		w := proving.Waits(context.Background(), ls[0].Wait)
		done := ls[2].Done()
		v.Remaining(ls[1], 3)
		require.NoError(t, ls[1].CountDown(context.Background()))
		require.NoError(t, ls[1].CountDown(context.Background()))
		v.Quiet()
		require.True(t, w.Pending())
		v.Remaining(ls[0], 1)
		require.NoError(t, ls[2].CountDown(context.Background()))
		v.Passes(w)
		v.Awaits(done, "Done")
		v.Remaining(ls[0], 0)
		start := time.Now()
		require.NoError(t, ls[1].Wait(context.Background()))
		v.AtOnce(start, "Wait on an open latch")
	})
}

func TestAcceptance049AWaitObeysItsDeadline(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		l := latches(v, 1, 1)[0]
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, l.Wait(ctx), context.DeadlineExceeded)
		v.Took(start, 500*time.Millisecond, "Wait")
	})
}

func TestAcceptance050ACountOutlivesItsProcessUnlessItIsEphemeral(t *testing.T) {
	for _, ephemeral := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var opts []zksync.Option
			if ephemeral {
				opts = append(opts, zklatch.WithEphemeral())
			}
			l := latches(v, 1, 2, opts...)[0]
			dying := v.Session()
			require.NoError(t, zklatch.New(dying, proving.LatchPath, 2, opts...).CountDown(context.Background()))
			v.Remaining(l, 1)
			v.Server.Expire(dying.ID())
			v.Quiet()
			if !ephemeral {
				v.Remaining(l, 1)
				return
			}
			v.Remaining(l, 2)
			require.NoError(t, l.CountDown(context.Background()))
			require.NoError(t, l.CountDown(context.Background()))
			require.NoError(t, l.Wait(context.Background()))
		})
	}
}

func TestAcceptance053CountingOnIsHarmless(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		l := latches(v, 1, 1)[0]
		for range 3 {
			require.NoError(t, l.CountDown(context.Background()))
			v.Remaining(l, 0)
		}
		require.NoError(t, l.Wait(context.Background()))
	})
}

// Whoever counted the last event died before it could open the latch.
func TestALatchOpensThoughTheLastToCountDiedAtOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := latches(v, 1, 1)[0]
		w := proving.Waits(context.Background(), l.Wait)
		v.Quiet()
		v.Server.Create(proving.LatchPath+"/counts/_c_by-hand-count-", nil, 2, 0)
		start := time.Now()
		v.Passes(w)
		require.LessOrEqual(t, time.Since(start), 15*time.Second)
	})
}

func TestAcceptance054AnotherTotalIsAnError(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		require.NoError(t, latches(v, 1, 2)[0].CountDown(context.Background()))
		err := latches(v, 1, 3)[0].CountDown(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "number of events of the latch is 2, not 3")
		require.ErrorIs(t, latches(v, 1, 0)[0].Wait(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, latches(v, 1, -1)[0].Wait(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, zklatch.New(nil, proving.LatchPath, 1).Wait(context.Background()), zksync.ErrMisuse)
	})
}

func TestAGateIsOpenUntilItIsClosed(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		gates := make([]*zklatch.Gate, 3)
		for i := range gates {
			gates[i] = zklatch.NewGate(v.Session(), "/gates/db")
		}
		require.NoError(t, gates[0].Wait(context.Background()))
		for range 2 {
			require.NoError(t, gates[0].Close(context.Background()))
			require.NoError(t, gates[1].Close(context.Background()), "again")
			v.Flush()
			closed, err := gates[2].IsClosed(context.Background())
			require.NoError(t, err)
			require.True(t, closed)
			var waiters []*proving.Attempt
			for _, g := range gates {
				waiters = append(waiters, proving.Waits(context.Background(), g.Wait))
			}
			v.Quiet()
			for _, w := range waiters {
				require.True(t, w.Pending())
			}
			require.NoError(t, gates[1].Open(context.Background()))
			require.NoError(t, gates[0].Open(context.Background()), "again")
			for _, w := range waiters {
				v.Passes(w)
			}
		}
	})
}

func TestEveryFaultLeavesTheGateSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		a, b := zklatch.NewGate(v.Session(), "/gates/db"), zklatch.NewGate(v.Session(), "/gates/db")
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			require.NoError(t, a.Close(ctx), name)
			w := proving.Waits(ctx, b.Wait)
			v.Later()
			require.True(t, w.Pending(), name)
			require.NoError(t, a.Open(ctx), name)
			v.Awaits(w.Done, "the wait to end")
			require.NoError(t, w.Err, name)
		}
	})
}

func TestAWaitAtALatchOrAGateOutlivesItsSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		g := zklatch.NewGate(s, "/gates/db")
		l := zklatch.New(s, proving.LatchPath, 1)
		require.NoError(t, g.Close(context.Background()))
		atGate, atLatch := proving.Waits(context.Background(), g.Wait), proving.Waits(context.Background(), l.Wait)
		v.Quiet()
		v.Server.Disconnect(s.ID())
		time.Sleep(time.Second)
		v.Server.Expire(s.ID())
		time.Sleep(time.Second)
		require.True(t, atGate.Pending() && atLatch.Pending(), fmt.Sprint(atGate.Err, atLatch.Err))
		require.NoError(t, g.Open(context.Background()))
		require.NoError(t, l.CountDown(context.Background()))
		v.Passes(atGate)
		v.Passes(atLatch)
	})
}
