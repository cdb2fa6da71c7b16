package zkbarrier_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// As in zksync: servers that give the same useless answer again and again are asked some ten times a second at most
// once it is clear that they do.
func TestServersThatAlwaysAnswerTheSameAreNotAskedInASpin(t *testing.T) {
	const noNode = -101
	calls := map[string]struct {
		op   zktest.Op
		call func(ctx context.Context, s *zksync.Session) error
	}{
		"Latch: the base node does not exist, though it was made": {zktest.GetData, func(ctx context.Context, s *zksync.Session) error {
			return zkbarrier.NewLatch(s, "/latch", 2).Reset(ctx)
		}},
		"Latch: no such directory, though it was made": {zktest.Multi, func(ctx context.Context, s *zksync.Session) error {
			return zkbarrier.NewLatch(s, "/latches/a", 2).Reset(ctx)
		}},
		"Latch: the next generation is refused": {zktest.Multi, func(ctx context.Context, s *zksync.Session) error {
			return zkbarrier.NewLatch(s, "/used", 2).Reset(ctx)
		}},
		"Barrier: the base node does not exist, though it was made": {zktest.GetData, func(ctx context.Context, s *zksync.Session) error {
			_, err := zkbarrier.NewBarrier(s, "/barrier", 2).Await(ctx)
			return err
		}},
		"Barrier: no such directory, though it was made": {zktest.Multi, func(ctx context.Context, s *zksync.Session) error {
			_, err := zkbarrier.NewBarrier(s, "/barriers/a", 2).Await(ctx)
			return err
		}},
		"DoubleBarrier: the base node does not exist, though it was made": {zktest.GetData, func(ctx context.Context, s *zksync.Session) error {
			if err := zkbarrier.NewDoubleBarrier(s, "/double", 1).Enter(ctx); err != nil {
				return err
			}
			return zkbarrier.NewDoubleBarrier(s, "/double", 1).Enter(ctx) // one too many
		}},
		"DoubleBarrier: no such directory, though it was made": {zktest.Multi, func(ctx context.Context, s *zksync.Session) error {
			return zkbarrier.NewDoubleBarrier(s, "/doubles/a", 2).Enter(ctx)
		}},
		"Phaser: the base node does not exist, though it was made": {zktest.GetData, func(ctx context.Context, s *zksync.Session) error {
			_, err := zkbarrier.NewPhaser(s, "/phaser").Register(ctx)
			return err
		}},
		"Phaser: no such directory, though it was made": {zktest.Multi, func(ctx context.Context, s *zksync.Session) error {
			_, err := zkbarrier.NewPhaser(s, "/phasers/a").Register(ctx)
			return err
		}},
	}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				s := srv.Session(t)
				require.NoError(t, zkbarrier.NewLatch(s, "/used", 2).Reset(t.Context()))
				asksWithPauses(t, srv, c.op, noNode, func(ctx context.Context) error { return c.call(ctx, s) })
			})
		})
	}
}

// The client library tells of a transaction that was refused as a whole, as is a refusal of one operation.
func TestAWaitGroupOnATappedConnectionDoesNotAskInASpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s, err := zksync.Tap(t.Context(), srv.Connect(t, 10*time.Second))
		require.NoError(t, err)
		asksWithPauses(t, srv, zktest.Multi, -101, func(ctx context.Context) error {
			return zkbarrier.NewWaitGroup(s, "/group").AddContext(ctx, 1)
		})
		require.NoError(t, s.Close())
	})
}

// All who wait try to close a round that is over, and servers may refuse for a while.
func TestARoundThatCannotBeClosedIsNotTriedInASpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s, dies := srv.Session(t), srv.Session(t)
		require.NoError(t, zkbarrier.NewWaitGroup(dies, "/group").AddContext(t.Context(), 1))
		srv.Expire(dies.ID())
		asksWithPauses(t, srv, zktest.Multi, -118, zkbarrier.NewWaitGroup(s, "/group").WaitContext)
	})
}

// A Done is said for certain, so answers that settle nothing must not end it.
func TestADoneOutlastsAnswersThatSettleNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		g := zkbarrier.NewWaitGroup(srv.Session(t), "/group")
		require.NoError(t, g.AddContext(t.Context(), 1))
		const sessionMoved = -118
		clear := srv.SetError(sessionMoved)
		time.AfterFunc(3*time.Second, clear)
		require.NoError(t, g.DoneContext(t.Context()))
		require.NoError(t, g.WaitContext(t.Context()))
	})
}

// asksWithPauses wants a call to go on trying for three seconds, with pauses.
func asksWithPauses(t *testing.T, srv *zktest.Server, op zktest.Op, code int32, call func(ctx context.Context) error) {
	t.Helper()
	const many = 150
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var asked atomic.Int32
	defer srv.InterceptFunc(func(*zktest.Request) zktest.Verdict {
		if asked.Add(1) < many {
			return zktest.Verdict{}
		}
		return zktest.Verdict{Delay: time.Second} // it spins, and time would stand still
	})()
	defer srv.SetError(code, op)()
	err := call(ctx)
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, "it goes on trying, with pauses: %v", err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, asked.Load(), int32(many))
}
