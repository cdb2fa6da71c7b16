package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

// closesLeavingNothing closes the session of a tapped connection, which lives on without a node of ours.
func (v *env) closesLeavingNothing(s *zksync.Session) {
	v.t.Helper()
	id := s.ID()
	require.NoError(v.t, s.Close())
	v.quiet()
	v.srv.CheckEphemerals(v.t, id)
}

// What the party hears of first, its context or the end of its session, is chance.
func TestAPartyThatWaitsAtABarrierIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	for name, opts := range map[string][]zkbarrier.BarrierOption{"strict": nil, "tolerant": {zkbarrier.Tolerant()}} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				inProcess(t, func(t *testing.T, v *env) {
					s := v.tapped()
					closing := await(context.Background(), zkbarrier.NewBarrier(s, barrierPath, 3, opts...))
					other := v.barriers(3, opts...)[0]
					v.gathered(other, 1)
					v.closesLeavingNothing(s)
					v.awaits(closing.done, "the party whose session closes")
					require.ErrorIs(t, closing.err, zksync.ErrClosed)
				})
			}
		})
	}
}

func TestPartiesOfAPhaserAreGoneWhenTheirTappedSessionCloses(t *testing.T) {
	for name, arrive := range map[string]bool{"registered": false, "waiting": true} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				inProcess(t, func(t *testing.T, v *env) {
					s, other := v.tapped(), v.phasers(1)[0]
					p := zkbarrier.NewPhaser(s, phaserPath)
					v.gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 2) })
					v.gives(0, other.Register)
					if arrive {
						closing := phase(context.Background(), p.ArriveAndAwaitAdvance)
						defer func() { require.ErrorIs(t, v.failed(closing.attempt), zksync.ErrClosed) }()
						v.quiet()
					}
					others := phase(context.Background(), other.ArriveAndAwaitAdvance)
					v.quiet()
					v.closesLeavingNothing(s)
					v.arrives(others, 1)
				})
			}
		})
	}
}
