package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestThePhaseGoesOnWithoutAPartyThatDied(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ps := phasers(v, 2)
			dying := v.Session()
			p := zkphaser.New(dying, proving.PhaserPath)
			v.Gives(0, ps[0].Register)
			v.Gives(0, ps[1].Register)
			v.Gives(0, p.Register)
			waiters := []*phased{phase(context.Background(), ps[0].ArriveAndAwaitAdvance), phase(context.Background(), ps[1].ArriveAndAwaitAdvance)}
			if arrived {
				v.Gives(0, p.Arrive)
				for i, w := range waiters { // both: who asks again before has not arrived twice
					hasArrived(v, w, 1)
					waiters[i] = phase(context.Background(), ps[i].ArriveAndAwaitAdvance)
				}
			}
			v.Later()
			require.True(t, waiters[0].Pending())
			v.Server.Expire(dying.ID())
			start := time.Now()
			want := 1
			if arrived {
				want = 2
			}
			for _, w := range waiters {
				hasArrived(v, w, want)
			}
			require.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
			census(v, ps[0], 0, 2)
			v.Later()
			_, err := p.Arrive(context.Background())
			require.ErrorIs(t, err, zksync.ErrLost)
			require.ErrorIs(t, err, zksync.ErrSessionExpired)
			v.Gives(want, p.Register)
			v.Gives(want, p.ArriveAndDeregister)
		})
	}
}

func TestAPartyWhoseSessionEndsWhileItWaitsIsTold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		p, other := zkphaser.New(s, proving.PhaserPath), phasers(v, 1)[0]
		v.Gives(0, p.Register)
		v.Gives(0, other.Register)
		w := phase(context.Background(), p.ArriveAndAwaitAdvance)
		watching := phase(context.Background(), func(ctx context.Context) (int, error) {
			return zkphaser.New(s, proving.PhaserPath).AwaitAdvance(ctx, 0)
		})
		v.Quiet()
		v.Server.Expire(s.ID())
		require.ErrorIs(t, v.Failed(w.Attempt), zksync.ErrLost)
		v.Later()
		require.True(t, watching.Pending())
		v.Gives(1, other.ArriveAndAwaitAdvance)
		hasArrived(v, watching, 1)
		census(v, other, 0, 1)
	})
}

func TestTheDeathOfAllPartiesTerminates(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		watcher := phasers(v, 1)[0]
		var sessions []*zksync.Session
		var ps []*zkphaser.Phaser
		for range 3 {
			s := v.Session()
			sessions, ps = append(sessions, s), append(ps, zkphaser.New(s, proving.PhaserPath))
			v.Gives(0, ps[len(ps)-1].Register)
		}
		v.Gives(0, ps[0].Arrive)
		w := phase(context.Background(), func(ctx context.Context) (int, error) { return watcher.AwaitAdvance(ctx, 0) })
		v.Later()
		for _, s := range sessions {
			v.Server.Expire(s.ID())
		}
		hasArrived(v, w, terminated+1)
		v.NothingLeft(proving.PhaserPath)
	})
}

func TestAClosedSessionEndsTheCallsOfAPhaser(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		p, other := zkphaser.New(s, proving.PhaserPath), phasers(v, 1)[0]
		v.Gives(0, p.Register)
		v.Gives(0, other.Register)
		w := phase(context.Background(), p.ArriveAndAwaitAdvance)
		v.Quiet()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.Failed(w.Attempt), zksync.ErrClosed)
		_, err := p.Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrClosed)
		_, err = p.Arrive(context.Background())
		require.ErrorIs(t, err, zksync.ErrClosed)
		v.Gives(1, other.ArriveAndAwaitAdvance)
	})
}

// isLostArriving has p arrive while the servers tell its session, of a connection that is tapped, too little to prove that it
// lives. It does all the same.
func isLostArriving(v *proving.Env, p *zkphaser.Phaser, s *zksync.Session, conn *zk.Conn) {
	v.T.Helper()
	id := s.ID()
	held := v.Server.Intercept(zktest.On(zktest.Sync, "/").Of(id).Hold())
	lost := phase(context.Background(), p.ArriveAndAwaitAdvance)
	time.Sleep(7 * time.Second)
	held.Remove()
	v.Awaits(lost.Done, "the lost party")
	require.ErrorIs(v.T, lost.Err, zksync.ErrLost)
	require.Equal(v.T, id, conn.SessionID())
}

// The owner of a tapped connection goes on with the session that could not be proved to live for a while.
func TestAPartyThatIsLostIsDeregisteredThoughItsTappedSessionLivesOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		conn := v.Server.Connect(t, 6*time.Second)
		s, err := zksync.Tap(context.Background(), conn)
		require.NoError(t, err)
		defer s.Close()
		slow, other := zkphaser.New(s, proving.PhaserPath), zkphaser.New(v.Session(), proving.PhaserPath)
		v.Gives(0, slow.Register)
		v.Gives(0, other.Register)
		isLostArriving(v, slow, s, conn)
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
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		conn := v.Server.Connect(t, 6*time.Second)
		s, err := zksync.Tap(context.Background(), conn)
		require.NoError(t, err)
		defer s.Close()
		slow := zkphaser.New(s, proving.PhaserPath)
		others := phasers(v, 2)
		for _, p := range append([]*zkphaser.Phaser{slow}, others...) {
			v.Gives(0, p.Register)
		}
		held := v.Server.Intercept(zktest.On(zktest.Delete, proving.PhaserPath+"/phase-1/*").Of(s.ID()).Hold())
		isLostArriving(v, slow, s, conn) // its node is in phase-1 now
		v.Gives(0, others[0].Arrive)
		v.Gives(0, others[1].Arrive)
		v.Gives(1, others[0].Arrive) // its node is in phase-2
		time.Sleep(20 * time.Second)
		held.Remove()
		hasArrived(v, phase(context.Background(), others[1].ArriveAndAwaitAdvance), 2)
		v.Gives(2, others[0].RegisteredParties)
	})
}
