package mutex_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A create lies in the queue of a server while its session goes to another one, looks for the node in vain, and queues
// with a new one. It is applied when the session comes back to that server. Nobody wants its node, and it would keep
// everybody out as long as the session lives: so it must be looked for again.
func TestANodeThatIsMadeWhenTheSessionComesBackToAServerIsRemoved(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		m := zksync.NewMutex(s, proving.LockPath)
		l, err := m.LockContext(t.Context()) // makes the directory
		require.NoError(t, err)
		require.NoError(t, l.Unlock())

		late := e.Intercept(zktest.On(zktest.Create, proving.LockPath+"/*").Nth(1).Hold().Queued())
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
		require.Len(t, e.Server(2).Children(proving.LockPath), 1, "the late node is gone, the holder's stays")
		require.False(t, proving.IsClosed(done))
		require.NoError(t, first.Unlock())
		next := lockAt(zksync.NewMutex(e.SessionAt(t, 2), proving.LockPath))
		start := time.Now()
		granted := <-next
		require.Equal(t, start, granted.at)
		require.NoError(t, granted.Unlock())
	})
}

// A create that was proposed before its session moved is committed after it.
func TestANodeThatIsCommittedAfterItsSessionHasMovedIsFound(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		m := zksync.NewMutex(s, proving.LockPath)
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		got := lockAt(m)
		time.Sleep(10 * time.Millisecond)
		e.Disconnect(s.ID())
		l = (<-got).Lease
		require.Len(t, e.Server(2).Children(proving.LockPath), 1)
		require.NoError(t, l.Unlock())
	}, zktest.WithCommitLatency(500*time.Millisecond))
}
