package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestThePhaseGoesOnWithoutAPartyThatDied(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		inProcess(t, func(t *testing.T, v *env) {
			ps := v.phasers(2)
			dying := v.session()
			p := zkphaser.New(dying, phaserPath)
			v.gives(0, ps[0].Register)
			v.gives(0, ps[1].Register)
			v.gives(0, p.Register)
			waiters := []*phased{phase(context.Background(), ps[0].ArriveAndAwaitAdvance), phase(context.Background(), ps[1].ArriveAndAwaitAdvance)}
			if arrived {
				v.gives(0, p.Arrive)
				for i, w := range waiters { // both: who asks again before has not arrived twice
					v.arrives(w, 1)
					waiters[i] = phase(context.Background(), ps[i].ArriveAndAwaitAdvance)
				}
			}
			v.later()
			require.True(t, waiters[0].pending())
			v.srv.Expire(dying.ID())
			start := time.Now()
			want := 1
			if arrived {
				want = 2
			}
			for _, w := range waiters {
				v.arrives(w, want)
			}
			require.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
			v.census(ps[0], 0, 2)
			v.later()
			_, err := p.Arrive(context.Background())
			require.ErrorIs(t, err, zksync.ErrLost)
			require.ErrorIs(t, err, zksync.ErrSessionExpired)
			v.gives(want, p.Register)
			v.gives(want, p.ArriveAndDeregister)
		})
	}
}

func TestAPartyWhoseSessionEndsWhileItWaitsIsTold(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		p, other := zkphaser.New(s, phaserPath), v.phasers(1)[0]
		v.gives(0, p.Register)
		v.gives(0, other.Register)
		w := phase(context.Background(), p.ArriveAndAwaitAdvance)
		watching := phase(context.Background(), func(ctx context.Context) (int, error) {
			return zkphaser.New(s, phaserPath).AwaitAdvance(ctx, 0)
		})
		v.quiet()
		v.srv.Expire(s.ID())
		require.ErrorIs(t, v.failed(w.attempt), zksync.ErrLost)
		v.later()
		require.True(t, watching.pending())
		v.gives(1, other.ArriveAndAwaitAdvance)
		v.arrives(watching, 1)
		v.census(other, 0, 1)
	})
}

func TestTheDeathOfAllPartiesTerminates(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		watcher := v.phasers(1)[0]
		var sessions []*zksync.Session
		var ps []*zkphaser.Phaser
		for range 3 {
			s := v.session()
			sessions, ps = append(sessions, s), append(ps, zkphaser.New(s, phaserPath))
			v.gives(0, ps[len(ps)-1].Register)
		}
		v.gives(0, ps[0].Arrive)
		w := phase(context.Background(), func(ctx context.Context) (int, error) { return watcher.AwaitAdvance(ctx, 0) })
		v.later()
		for _, s := range sessions {
			v.srv.Expire(s.ID())
		}
		v.arrives(w, terminated+1)
		v.nothingLeft(phaserPath)
	})
}

func TestAClosedSessionEndsTheCallsOfAPhaser(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		p, other := zkphaser.New(s, phaserPath), v.phasers(1)[0]
		v.gives(0, p.Register)
		v.gives(0, other.Register)
		w := phase(context.Background(), p.ArriveAndAwaitAdvance)
		v.quiet()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.failed(w.attempt), zksync.ErrClosed)
		_, err := p.Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrClosed)
		_, err = p.Arrive(context.Background())
		require.ErrorIs(t, err, zksync.ErrClosed)
		v.gives(1, other.ArriveAndAwaitAdvance)
	})
}

// isLostArriving has p arrive while the servers tell its session, of a connection that is tapped, too little to prove that it
// lives. It does all the same.
func (v *env) isLostArriving(p *zkphaser.Phaser, s *zksync.Session, conn *zk.Conn) {
	v.t.Helper()
	id := s.ID()
	held := v.srv.Intercept(zktest.On(zktest.Sync, "/").Of(id).Hold())
	lost := phase(context.Background(), p.ArriveAndAwaitAdvance)
	time.Sleep(7 * time.Second)
	held.Remove()
	v.awaits(lost.done, "the lost party")
	require.ErrorIs(v.t, lost.err, zksync.ErrLost)
	require.Equal(v.t, id, conn.SessionID())
}

// The owner of a tapped connection goes on with the session that could not be proved to live for a while.
func TestAPartyThatIsLostIsDeregisteredThoughItsTappedSessionLivesOn(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		conn := v.srv.Connect(t, 6*time.Second)
		s, err := zksync.Tap(context.Background(), conn)
		require.NoError(t, err)
		defer s.Close()
		slow, other := zkphaser.New(s, phaserPath), zkphaser.New(v.session(), phaserPath)
		v.gives(0, slow.Register)
		v.gives(0, other.Register)
		v.isLostArriving(slow, s, conn)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for n := range 2 {
			next, err := other.ArriveAndAwaitAdvance(ctx)
			require.NoError(t, err)
			require.Equal(t, n+1, next)
		}
	})
}

// What removes a lost party looks for it again while the answer to its first request is missing.
func TestAPartyThatIsLostTakesNoOtherPartyAlong(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		conn := v.srv.Connect(t, 6*time.Second)
		s, err := zksync.Tap(context.Background(), conn)
		require.NoError(t, err)
		defer s.Close()
		slow := zkphaser.New(s, phaserPath)
		others := v.phasers(2)
		for _, p := range append([]*zkphaser.Phaser{slow}, others...) {
			v.gives(0, p.Register)
		}
		held := v.srv.Intercept(zktest.On(zktest.Delete, phaserPath+"/phase-1/*").Of(s.ID()).Hold())
		v.isLostArriving(slow, s, conn) // its node is in phase-1 now
		v.gives(0, others[0].Arrive)
		v.gives(0, others[1].Arrive)
		v.gives(1, others[0].Arrive) // its node is in phase-2
		time.Sleep(20 * time.Second)
		held.Remove()
		v.arrives(phase(context.Background(), others[1].ArriveAndAwaitAdvance), 2)
		v.gives(2, others[0].RegisteredParties)
	})
}
