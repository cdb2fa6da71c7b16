package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// closesLeavingNothing closes the session of a tapped connection, which lives on without a node of ours.
func (v *env) closesLeavingNothing(s *zksync.Session) {
	v.t.Helper()
	id := s.ID()
	require.NoError(v.t, s.Close())
	v.quiet()
	zktest.CheckEphemerals(v.t, v.srv, id)
}

// What the party hears of first, its context or the end of its session, is chance.
func TestAPartyThatWaitsAtABarrierIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	for name, opts := range map[string][]zksync.Option{"strict": nil, "tolerant": {zkbarrier.Tolerant()}} {
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
					p := zkphaser.New(s, phaserPath)
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

// losesLease has the servers tell the session that p is of, of a connection that is tapped, too little to prove that it lives. It
// does all the same.
func (v *env) losesLease(s *zksync.Session, p *zkphaser.Phaser) {
	v.t.Helper()
	id := s.ID()
	held := v.srv.Intercept(zktest.On(zktest.Sync, "/").Of(id).Hold())
	ctx, cancel := context.WithCancel(context.Background())
	lost := make(chan bool)
	go func() {
		was := false
		for state := range s.Changes(ctx) {
			was = was || state == zksync.Lost
		}
		lost <- was
	}()
	waiting := phase(ctx, func(ctx context.Context) (int, error) { return p.AwaitAdvance(ctx, 0) })
	time.Sleep(s.Timeout() + time.Second)
	cancel()
	require.True(v.t, <-lost)
	require.ErrorIs(v.t, v.failed(waiting.attempt), context.Canceled)
	held.Remove()
	v.quiet()
	require.Equal(v.t, id, s.ID())
}

func TestPartiesOfAPhaserAreGoneWhenTheirTappedSessionIsLostAndClosed(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s, other := v.tapped(), v.phasers(1)[0]
		p := zkphaser.New(s, phaserPath)
		v.gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 2) })
		v.gives(0, other.Register)
		v.losesLease(s, p)
		v.census(other, 0, 3)
		others := phase(context.Background(), other.ArriveAndAwaitAdvance)
		v.closesLeavingNothing(s)
		v.arrives(others, 1)
	})
}

func TestPartiesOfAPhaserThatWereLostAreGoneWhenItTerminates(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.tapped()
		p := zkphaser.New(s, phaserPath)
		v.gives(0, p.Register)
		v.losesLease(s, p)
		require.NoError(t, p.ForceTermination(context.Background()))
		v.quiet()
		zktest.CheckEphemerals(t, v.srv, s.ID())
	})
}

func TestMembersOfAWaitGroupAreDeadWhenTheirTappedSessionCloses(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s, other := v.tapped(), v.groups(1)[0]
		require.NoError(t, zkwaitgroup.New(s, groupPath).AddContext(context.Background(), 2))
		w := waits(context.Background(), other.WaitContext)
		v.quiet()
		v.closesLeavingNothing(s)
		var dead *zkwaitgroup.DeadMembersError
		require.ErrorAs(t, v.failed(w), &dead)
		require.Equal(t, 2, dead.Members[0].N)
	})
}

func TestAPartyThatHasEnteredADoubleBarrierIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s, other := v.tapped(), v.doubles(1, 2)[0]
		b := zkbarrier.NewDoubleBarrier(s, doublePath, 2)
		v.allPass(enters(b, other))
		w := leaves(other)
		v.nonePasses(w)
		v.closesLeavingNothing(s)
		v.allPass(w)
	})
}

func TestAPartyThatEntersADoubleBarrierIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	for range 20 {
		inProcess(t, func(t *testing.T, v *env) {
			s := v.tapped()
			w := enters(zkbarrier.NewDoubleBarrier(s, doublePath, 2))
			v.settled(doubleParties, 1)
			v.closesLeavingNothing(s)
			require.ErrorIs(t, v.failed(w[0]), zksync.ErrClosed)
		})
	}
}

// The answer is on its way: whether the member was added nobody finds out any more.
func TestAMemberThatIsBeingAddedIsGoneWhenItsTappedSessionCloses(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.tapped()
		v.groups(1)[0].Add(1)
		g := zkwaitgroup.New(s, groupPath)
		v.srv.Delay(s.ID(), 0, 100*time.Millisecond)
		w := waits(context.Background(), func(ctx context.Context) error { return g.AddContext(ctx, 1) })
		time.Sleep(50 * time.Millisecond)
		id := s.ID()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.failed(w), zksync.ErrClosed)
		v.later()
		zktest.CheckEphemerals(t, v.srv, id)
	})
}
