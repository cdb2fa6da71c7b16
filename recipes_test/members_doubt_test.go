package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A create lies in the queue of a server while its session goes to another one, looks for the node in vain, and queues
// with a new one. It is applied when the session comes back to that server. Nobody wants its node, and it would keep
// everybody out as long as the session lives: so it must be looked for again.
func TestANodeThatIsMadeWhenTheSessionComesBackToAServerIsRemoved(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		m := zksync.NewMutex(s, lockPath)
		l, err := m.LockContext(t.Context()) // makes the directory
		require.NoError(t, err)
		require.NoError(t, l.Unlock())

		late := e.Intercept(zktest.On(zktest.Create, lockPath+"/*").Nth(1).Hold().Queued())
		got := lockAt(m)
		require.NoError(t, late.WaitHeld(t.Context()))
		e.Disconnect(s.ID())
		first := <-got
		require.Equal(t, 1, e.At(s.ID()), "it looked there in vain, and took a new place")
		done := first.Done()
		e.Disconnect(s.ID())
		time.Sleep(100 * time.Millisecond)
		e.Disconnect(s.ID())
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, 0, e.At(s.ID()))
		late.Release()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, e.Server(2).Children(lockPath), 1, "the late node is gone, the holder's stays")
		require.False(t, isClosed(done))
		require.NoError(t, first.Unlock())
		next := lockAt(zksync.NewMutex(e.SessionAt(t, 2), lockPath))
		start := time.Now()
		granted := <-next
		require.Equal(t, start, granted.at)
		require.NoError(t, granted.Unlock())
	})
}

// Likewise, but the node is that of a party, which has arrived again by then. It is the same party, and its nodes have one
// name: a strict barrier would take the removal of one for a death.
func TestAnArrivalThatIsAppliedWhenTheSessionComesBackBreaksNoStrictBarrier(t *testing.T) {
	for _, others := range []string{"come before it", "come behind it", "are told that it gave up"} {
		t.Run("the others "+others, func(t *testing.T) {
			amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				bs := []*zkbarrier.Barrier{zkbarrier.NewBarrier(s, barrierPath, 3)}
				for range 2 {
					bs = append(bs, zkbarrier.NewBarrier(e.SessionAt(t, 2), barrierPath, 3))
				}
				for _, a := range awaitAll(t.Context(), bs...) {
					<-a.done
					require.NoError(t, a.err)
				}
				late := e.Intercept(zktest.On(zktest.Create, barrierPath+"/*/*").Nth(1).Hold().Queued())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				all := awaitAll(ctx, bs[0])
				require.NoError(t, late.WaitHeld(t.Context()))
				e.Disconnect(s.ID())
				time.Sleep(100 * time.Millisecond)
				require.Equal(t, 1, e.At(s.ID()), "it looked there in vain, and has arrived anew")
				if others != "come behind it" {
					all = append(all, await(t.Context(), bs[1]))
				}
				for range 2 {
					time.Sleep(100 * time.Millisecond)
					e.Disconnect(s.ID())
				}
				time.Sleep(100 * time.Millisecond)
				require.Equal(t, 0, e.At(s.ID()))
				late.Release()
				time.Sleep(3 * time.Second)
				if others == "are told that it gave up" {
					cancel()
					<-all[0].done
					<-all[1].done
					require.ErrorIs(t, all[0].err, context.Canceled)
					require.ErrorIs(t, all[1].err, zksync.ErrBroken)
					synctest.Wait()
					require.ElementsMatch(t, []string{"ended-0", "ended-1"}, e.Server(2).Children(barrierPath), "nothing of it is left")
					return
				}
				for len(all) < 3 {
					all = append(all, await(t.Context(), bs[len(all)]))
				}
				for _, a := range all {
					<-a.done
					require.NoError(t, a.err)
				}
			})
		})
	}
}

// A create that was proposed before its session moved is committed after it.
func TestANodeThatIsCommittedAfterItsSessionHasMovedIsFound(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		m := zksync.NewMutex(s, lockPath)
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		got := lockAt(m)
		time.Sleep(10 * time.Millisecond)
		e.Disconnect(s.ID())
		l = (<-got).Lease
		require.Len(t, e.Server(2).Children(lockPath), 1)
		require.NoError(t, l.Unlock())
	}, zktest.WithCommitLatency(500*time.Millisecond))
}
