package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

const latchPath = "/latches/a"

func (v *env) latches(n, total int, opts ...zksync.Option) []*zklatch.Latch {
	v.t.Helper()
	all := make([]*zklatch.Latch, n)
	for i := range all {
		all[i] = zklatch.New(v.session(), latchPath, total, opts...)
	}
	return all
}

// waits starts a call that returns an error only.
func waits(ctx context.Context, f func(context.Context) error) *attempt {
	return call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return nil, f(ctx) })
}

func (v *env) passes(a *attempt) {
	v.t.Helper()
	v.awaits(a.done, "the wait to end")
	require.NoError(v.t, a.err)
}

// counter is a latch, or a wait group.
type counter interface {
	Count(ctx context.Context) (int, error)
}

// remaining checks how many are still waited for.
func (v *env) remaining(c counter, want int) {
	v.t.Helper()
	v.flush()
	n, err := c.Count(context.Background())
	require.NoError(v.t, err)
	require.Equal(v.t, want, n)
}

func TestAcceptance047And048ALatchOpensWhenAllHaveCounted(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ls := v.latches(3, 3)
		w := waits(context.Background(), ls[0].Wait)
		done := ls[2].Done()
		v.remaining(ls[1], 3)
		require.NoError(t, ls[1].CountDown(context.Background()))
		require.NoError(t, ls[1].CountDown(context.Background()))
		v.quiet()
		require.True(t, w.pending())
		v.remaining(ls[0], 1)
		require.NoError(t, ls[2].CountDown(context.Background()))
		v.passes(w)
		v.awaits(done, "Done")
		v.remaining(ls[0], 0)
		start := time.Now()
		require.NoError(t, ls[1].Wait(context.Background()))
		v.atOnce(start, "Wait on an open latch")
	})
}

func TestAcceptance049AWaitObeysItsDeadline(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		l := v.latches(1, 1)[0]
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, l.Wait(ctx), context.DeadlineExceeded)
		v.took(start, 500*time.Millisecond, "Wait")
	})
}

func TestAcceptance050ACountOutlivesItsProcessUnlessItIsEphemeral(t *testing.T) {
	for _, ephemeral := range []bool{false, true} {
		inProcess(t, func(t *testing.T, v *env) {
			var opts []zksync.Option
			if ephemeral {
				opts = append(opts, zklatch.Ephemeral())
			}
			l := v.latches(1, 2, opts...)[0]
			dying := v.session()
			require.NoError(t, zklatch.New(dying, latchPath, 2, opts...).CountDown(context.Background()))
			v.remaining(l, 1)
			v.srv.Expire(dying.ID())
			v.quiet()
			if !ephemeral {
				v.remaining(l, 1)
				return
			}
			v.remaining(l, 2)
			require.NoError(t, l.CountDown(context.Background()))
			require.NoError(t, l.CountDown(context.Background()))
			require.NoError(t, l.Wait(context.Background()))
		})
	}
}

func TestAcceptance053CountingOnIsHarmless(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		l := v.latches(1, 1)[0]
		for range 3 {
			require.NoError(t, l.CountDown(context.Background()))
			v.remaining(l, 0)
		}
		require.NoError(t, l.Wait(context.Background()))
	})
}

// Whoever counted the last event died before it could open the latch.
func TestALatchOpensThoughTheLastToCountDiedAtOnce(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		l := v.latches(1, 1)[0]
		w := waits(context.Background(), l.Wait)
		v.quiet()
		v.srv.Create(latchPath+"/counts/_c_by-hand-count-", nil, 2, 0)
		start := time.Now()
		v.passes(w)
		require.LessOrEqual(t, time.Since(start), 10*time.Second)
	})
}

func TestAcceptance054AnotherTotalIsAnError(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		require.NoError(t, v.latches(1, 2)[0].CountDown(context.Background()))
		err := v.latches(1, 3)[0].CountDown(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "2 events, not 3")
		require.ErrorIs(t, v.latches(1, 0)[0].Wait(context.Background()), zksync.ErrMisuse)
		require.ErrorIs(t, zklatch.New(nil, latchPath, 1).Wait(context.Background()), zksync.ErrMisuse)
	})
}

func TestAGateIsOpenUntilItIsClosed(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		gates := make([]*zklatch.Gate, 3)
		for i := range gates {
			gates[i] = zklatch.NewGate(v.session(), "/gates/db")
		}
		require.NoError(t, gates[0].Wait(context.Background()))
		for range 2 {
			require.NoError(t, gates[0].Close(context.Background()))
			require.NoError(t, gates[1].Close(context.Background()), "again")
			v.flush()
			closed, err := gates[2].IsClosed(context.Background())
			require.NoError(t, err)
			require.True(t, closed)
			var waiters []*attempt
			for _, g := range gates {
				waiters = append(waiters, waits(context.Background(), g.Wait))
			}
			v.quiet()
			for _, w := range waiters {
				require.True(t, w.pending())
			}
			require.NoError(t, gates[1].Open(context.Background()))
			require.NoError(t, gates[0].Open(context.Background()), "again")
			for _, w := range waiters {
				v.passes(w)
			}
		}
	})
}

func TestEveryFaultLeavesTheGateSound(t *testing.T) {
	everyFault(t, func(t *testing.T, v *env) func(string) {
		a, b := zklatch.NewGate(v.session(), "/gates/db"), zklatch.NewGate(v.session(), "/gates/db")
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			require.NoError(t, a.Close(ctx), name)
			w := waits(ctx, b.Wait)
			v.later()
			require.True(t, w.pending(), name)
			require.NoError(t, a.Open(ctx), name)
			v.awaits(w.done, "the wait to end")
			require.NoError(t, w.err, name)
		}
	})
}

func TestAWaitAtALatchOrAGateOutlivesItsSession(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		g := zklatch.NewGate(s, "/gates/db")
		l := zklatch.New(s, latchPath, 1)
		require.NoError(t, g.Close(context.Background()))
		atGate, atLatch := waits(context.Background(), g.Wait), waits(context.Background(), l.Wait)
		v.quiet()
		v.srv.Disconnect(s.ID())
		time.Sleep(time.Second)
		v.srv.Expire(s.ID())
		time.Sleep(time.Second)
		require.True(t, atGate.pending() && atLatch.pending(), fmt.Sprint(atGate.err, atLatch.err))
		require.NoError(t, g.Open(context.Background()))
		require.NoError(t, l.CountDown(context.Background()))
		v.passes(atGate)
		v.passes(atLatch)
	})
}
