package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// givesUpLost has a party of three that waits on a tapped connection give up while the session cannot be proved to live. It does all the
// same. Another one waits with it.
func (v *env) givesUpLost(opts ...zksync.Option) (other *awaiting, spare []*zkbarrier.Barrier) {
	v.t.Helper()
	conn := v.srv.Connect(v.t, 6*time.Second)
	s, err := zksync.Tap(context.Background(), conn)
	require.NoError(v.t, err)
	v.t.Cleanup(func() { require.NoError(v.t, s.Close()) })
	bs := v.barriers(3, opts...)
	ctx, cancel := context.WithCancel(context.Background())
	lost := await(ctx, zkbarrier.NewBarrier(s, barrierPath, 3, opts...))
	v.gathered(bs[0], 1)
	other = await(context.Background(), bs[0])
	v.gathered(bs[0], 2)
	id := s.ID()
	held := v.srv.Intercept(zktest.On(zktest.Sync, "/").Of(id).Hold())
	time.Sleep(7 * time.Second)
	cancel()
	v.awaits(lost.done, "the party that gives up")
	require.ErrorIs(v.t, lost.err, context.Canceled)
	held.Remove()
	v.later()
	require.Equal(v.t, id, conn.SessionID())
	return other, bs[1:]
}

func TestAPartyThatGivesUpInALostSessionBreaksTheBarrierThoughItsTappedSessionLivesOn(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		other, _ := v.givesUpLost()
		v.brokenFor(other)
	})
}

func TestAPartyThatGivesUpInALostSessionIsReplacedThoughItsTappedSessionLivesOn(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		other, spare := v.givesUpLost(zkbarrier.Tolerant())
		next := await(context.Background(), spare[0])
		v.quiet()
		require.True(t, other.pending() && next.pending(), "a third is wanted")
		v.leave(other, next, await(context.Background(), spare[1]))
	})
}
