package faults_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestAWaiterThatIsGrantedAtItsDeadlineComesBackInTimeFromAFrozenServer(t *testing.T) {
	for range 40 { // which of the two it hears of first is a matter of chance
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			there(w)
			m := lock(w.clients[0])
			first, err := m.LockContext(t.Context())
			require.NoError(t, err)
			thaw := w.srv.Freeze()
			w.later(5*ms, func() { _ = first.Unlock() }) // hands over to the waiter, without a request
			ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
			defer cancel()
			began := time.Now()
			second, err := m.LockContext(ctx)
			require.LessOrEqual(t, time.Since(began), 5*ms+slack)
			thaw()
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				require.NoError(t, second.Unlock())
			}
			require.NoError(t, w.srv.WaitFor(t.Context(), func() bool { return len(w.srv.Children(lockDir)) == 0 }))
			w.close()
		})
	}
}

func TestAnAnswerAtTheDeadlineLeavesNoEntry(t *testing.T) {
	for range 200 { // which of the two it hears of first is a matter of chance
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			there(w)
			w.srv.Delay(w.clients[0].s.ID(), hop, hop)
			m := lock(w.clients[0])
			ctx, cancel := context.WithTimeout(t.Context(), 2*hop)
			defer cancel()
			l, err := m.LockContext(ctx)
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				require.NoError(t, l.Unlock())
			}
			time.Sleep(soon)
			require.Empty(t, w.srv.Children(lockDir))
			w.close()
		})
	}
}

// The neighbour's watch on the holder's node is older than the waiter's on its own.
func TestAWaiterWhoseNodeWasDeletedIsNotGrantedByAWatchOfItsNeighbour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nil)
		there(w)
		c := w.clients[0]
		w.srv.Delay(c.s.ID(), hop, hop)
		holder, err := lock(c).LockContext(t.Context())
		require.NoError(t, err)
		holder.Done() // has the node watched
		time.Sleep(soon)

		began := time.Now()
		w.later(4*hop-hop/2, func() { // the waiter has asked for the list and not yet for its watches
			w.srv.Delete(lockDir + "/" + w.srv.Children(lockDir)[1])
			w.srv.Delete(lockDir + "/" + w.srv.Children(lockDir)[0])
		})
		waiter, err := lock(c).LockContext(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, holder.Unlock(), zksync.ErrLost)
		_, there := w.srv.Node(waiter.Node())
		require.True(t, there, "granted after %v on a node that is gone", time.Since(began))
		require.NoError(t, waiter.Unlock())
		w.close()
	})
}

func TestAGrantAtTheDeadlineLeavesNoEntry(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2, nil)
			there(w)
			holder, err := lock(w.clients[0]).LockContext(t.Context())
			require.NoError(t, err)
			w.later(50*ms, func() { _ = holder.Unlock() })
			ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
			defer cancel()
			l, err := lock(w.clients[1]).LockContext(ctx)
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				require.NoError(t, l.Unlock())
			}
			time.Sleep(soon)
			require.Empty(t, w.srv.Children(lockDir))
			w.close()
		})
	}
}
