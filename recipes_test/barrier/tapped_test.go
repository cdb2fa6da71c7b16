package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// givesUpLost has a party of three that waits on a tapped connection give up while the session cannot be proved to live. It does all the
// same. Another one waits with it.
func givesUpLost(v *proving.Env, opts ...zksync.Option) (other *awaiting, spare []*zkbarrier.Barrier) {
	v.T.Helper()
	conn := v.Server.Connect(v.T, 6*time.Second)
	s, err := zksync.Tap(context.Background(), conn)
	require.NoError(v.T, err)
	v.T.Cleanup(func() { require.NoError(v.T, s.Close()) })
	bs := barriers(v, 3, opts...)
	ctx, cancel := context.WithCancel(context.Background())
	lost := await(ctx, zkbarrier.NewBarrier(s, proving.BarrierPath, 3, opts...))
	gathered(v, bs[0], 1)
	other = await(context.Background(), bs[0])
	gathered(v, bs[0], 2)
	id := s.ID()
	held := v.Server.Intercept(zktest.On(zktest.Sync, "/").Of(id).Hold())
	time.Sleep(7 * time.Second)
	cancel()
	v.Awaits(lost.done, "the party that gives up")
	require.ErrorIs(v.T, lost.err, context.Canceled)
	held.Remove()
	v.Later()
	require.Equal(v.T, id, conn.SessionID())
	return other, bs[1:]
}

func TestAPartyThatGivesUpInALostSessionBreaksTheBarrierThoughItsTappedSessionLivesOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		other, _ := givesUpLost(v)
		brokenFor(v, other)
	})
}

func TestAPartyThatGivesUpInALostSessionIsReplacedThoughItsTappedSessionLivesOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		other, spare := givesUpLost(v, zkbarrier.Tolerant())
		next := await(context.Background(), spare[0])
		v.Quiet()
		require.True(t, other.pending() && next.pending(), "a third is wanted")
		leave(v, other, next, await(context.Background(), spare[1]))
	})
}

// What the party hears of first, its context or the end of its session, is chance.
func TestAPartyThatWaitsAtABarrierIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	for name, opts := range map[string][]zksync.Option{"strict": nil, "tolerant": {zkbarrier.Tolerant()}} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s := v.Tapped()
					closing := await(context.Background(), zkbarrier.NewBarrier(s, proving.BarrierPath, 3, opts...))
					other := barriers(v, 3, opts...)[0]
					gathered(v, other, 1)
					v.ClosesLeavingNothing(s)
					v.Awaits(closing.done, "the party whose session closes")
					require.ErrorIs(t, closing.err, zksync.ErrClosed)
				})
			}
		})
	}
}

func TestAPartyThatHasEnteredADoubleBarrierIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Tapped(), doubles(v, 1, 2)[0]
		b := zkbarrier.NewDoubleBarrier(s, doublePath, 2)
		allPass(v, enters(b, other))
		w := leaves(other)
		nonePasses(v, w)
		v.ClosesLeavingNothing(s)
		allPass(v, w)
	})
}

func TestAPartyThatEntersADoubleBarrierIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	for range 20 {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Tapped()
			w := enters(zkbarrier.NewDoubleBarrier(s, doublePath, 2))
			v.Settled(doubleParties, 1)
			v.ClosesLeavingNothing(s)
			require.ErrorIs(t, v.Failed(w[0]), zksync.ErrClosed)
		})
	}
}
