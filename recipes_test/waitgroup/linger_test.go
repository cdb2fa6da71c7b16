package waitgroup_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// The request of an Add lies in the queue of a server while its session goes to another one, and is applied when the
// session comes back: when another request has added the member, when the member is done, when its round is over, or
// when the Add has been taken back.
func TestAnAddThatLingersInAServerCountsOnce(t *testing.T) {
	for _, when := range []string{"added", "done", "taken back", "the round is over"} {
		t.Run(when, func(t *testing.T) {
			proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				background := context.Background()
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				g, other := zkwaitgroup.New(s, proving.GroupPath), zkwaitgroup.New(e.SessionAt(t, 2), proving.GroupPath)
				counts := func(want int) {
					n, err := other.Count(background)
					require.NoError(t, err)
					require.Equal(t, want, n)
				}
				require.NoError(t, other.AddContext(background, 1))
				held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
				ctx, cancel := context.WithCancel(background)
				adds := proving.Waits(ctx, func(ctx context.Context) error { return g.AddContext(ctx, 1) })
				require.NoError(t, held.WaitHeld(t.Context()))
				if when == "taken back" {
					cancel()
					<-adds.Done
				}
				e.Disconnect(s.ID())
				time.Sleep(100 * time.Millisecond)
				if when != "taken back" {
					<-adds.Done
					require.NoError(t, adds.Err)
				}
				cancel()
				if when == "done" || when == "the round is over" {
					require.NoError(t, g.DoneContext(background))
				}
				if when == "the round is over" {
					require.NoError(t, other.DoneContext(background))
					require.NoError(t, other.AddContext(background, 1))
				}
				proving.ComesBack(t, e, s)
				held.Release()
				synctest.Wait()
				if when == "added" {
					counts(2)
					require.NoError(t, g.DoneContext(background))
				}
				time.Sleep(20 * time.Second) // two session timeouts
				counts(1)
				require.NoError(t, other.DoneContext(background))
				require.NoError(t, other.WaitContext(background))
				require.Empty(t, e.Server(0).Children(proving.GroupPath))
			})
		})
	}
}

// A Done lingers like that, and is applied after its WaitGroup has looked in vain, and before it has found out whose
// member it takes next.
func TestADoneThatLingersInAServerCountsOnce(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		background := context.Background()
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		g, other := zkwaitgroup.New(s, proving.GroupPath), zkwaitgroup.New(e.SessionAt(t, 2), proving.GroupPath)
		require.NoError(t, other.AddContext(background, 3))
		held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold().Queued())
		done := proving.Waits(background, g.DoneContext)
		require.NoError(t, held.WaitHeld(t.Context()))
		// The first listing is that of the look, the second one that of the search.
		released, listings := make(chan struct{}), atomic.Int32{}
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session == s.ID() && q.Op == zktest.GetChildren && listings.Add(1) > 1 {
				return zktest.Verdict{Hold: released}
			}
			return zktest.Verdict{}
		})
		e.Disconnect(s.ID())
		time.Sleep(100 * time.Millisecond)
		require.Greater(t, listings.Load(), int32(1))
		proving.ComesBack(t, e, s)
		held.Release()
		synctest.Wait()
		close(released)
		<-done.Done
		require.NoError(t, done.Err)
		time.Sleep(20 * time.Second) // two session timeouts
		n, err := other.Count(background)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	})
}

// The members of the lost session go with it; the Add that got no answer counts in the next session, and there only.
func TestAnAddThatLingersInAServerBeyondItsSessionCountsOnce(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
			background := context.Background()
			s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
			g, other := zkwaitgroup.New(s, proving.GroupPath), zkwaitgroup.New(e.SessionAt(t, 2), proving.GroupPath)
			require.NoError(t, g.AddContext(background, 1))
			lost := s.ID()
			held := e.Intercept(zktest.On(zktest.Multi, "**").Of(lost).Nth(1).Hold().Queued())
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			adds := proving.Waits(ctx, func(ctx context.Context) error { return g.AddContext(ctx, 1) })
			require.NoError(t, held.WaitHeld(t.Context()))
			e.Partition(lost)
			if cancelled {
				cancel()
			}
			<-adds.Done
			require.Equal(t, cancelled, adds.Err != nil)
			for s.ID() == lost {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond)
			held.Release()
			time.Sleep(20 * time.Second)
			if cancelled {
				require.NoError(t, g.AddContext(background, 1))
			}
			require.NoError(t, g.DoneContext(background), "of the member that died")
			for left := 1; left >= 0; left-- {
				n, err := other.Count(background)
				require.NoError(t, err)
				require.Equal(t, left, n)
				if left > 0 {
					require.NoError(t, g.DoneContext(background))
				}
			}
		})
	}
}
