package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
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

// The first arrival notices that all parties of the session are gone.
func TestEachArrivalAfterALostSessionSaysThatThePartiesWereLost(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		p, other := zkphaser.New(s, proving.PhaserPath), phasers(v, 1)[0]
		v.Gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 2) })
		v.Gives(0, other.Register)
		v.Server.Expire(s.ID())
		v.Later()
		for range 3 {
			_, err := p.Arrive(context.Background())
			require.ErrorIs(t, err, zksync.ErrLost)
		}
		v.Gives(0, p.Register)
		v.Gives(0, p.Arrive)
	})
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
