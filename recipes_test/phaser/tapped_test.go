package phaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestPartiesOfAPhaserAreGoneWhenTheirTappedSessionCloses(t *testing.T) {
	for name, arrive := range map[string]bool{"registered": false, "waiting": true} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s, other := v.Tapped(), phasers(v, 1)[0]
					p := zkphaser.New(s, proving.PhaserPath)
					v.Gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 2) })
					v.Gives(0, other.Register)
					if arrive {
						closing := phase(context.Background(), p.ArriveAndAwaitAdvance)
						defer func() { require.ErrorIs(t, v.Failed(closing.Attempt), zksync.ErrClosed) }()
						v.Quiet()
					}
					others := phase(context.Background(), other.ArriveAndAwaitAdvance)
					v.Quiet()
					v.ClosesLeavingNothing(s)
					hasArrived(v, others, 1)
				})
			}
		})
	}
}

// losesLease has the servers tell the session that p is of, of a connection that is tapped, too little to prove that it lives. It
// does all the same.
func losesLease(v *proving.Env, s *zksync.Session, p *zkphaser.Phaser) {
	v.T.Helper()
	id := s.ID()
	held := v.Server.Intercept(zktest.On(zktest.Sync, "/").Of(id).Hold())
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
	require.True(v.T, <-lost)
	require.ErrorIs(v.T, v.Failed(waiting.Attempt), context.Canceled)
	held.Remove()
	v.Quiet()
	require.Equal(v.T, id, s.ID())
}

func TestPartiesOfAPhaserAreGoneWhenTheirTappedSessionIsLostAndClosed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Tapped(), phasers(v, 1)[0]
		p := zkphaser.New(s, proving.PhaserPath)
		v.Gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 2) })
		v.Gives(0, other.Register)
		losesLease(v, s, p)
		census(v, other, 0, 3)
		others := phase(context.Background(), other.ArriveAndAwaitAdvance)
		v.ClosesLeavingNothing(s)
		hasArrived(v, others, 1)
	})
}

func TestPartiesOfAPhaserThatWereLostAreGoneWhenItTerminates(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Tapped()
		p := zkphaser.New(s, proving.PhaserPath)
		v.Gives(0, p.Register)
		losesLease(v, s, p)
		require.NoError(t, p.ForceTermination(context.Background()))
		v.Quiet()
		zktest.CheckEphemerals(t, v.Server, s.ID())
	})
}
