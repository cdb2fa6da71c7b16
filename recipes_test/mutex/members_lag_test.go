package mutex_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

type grant struct {
	at time.Time
	*zksync.Lease
}

// lockAt locks in the background and tells when it was granted.
func lockAt(m *zksync.Mutex) <-chan grant {
	got := make(chan grant, 1)
	go func() {
		if l, err := m.LockContext(context.Background()); err == nil {
			got <- grant{time.Now(), l}
		}
	}()
	return got
}

func TestAWaiterAtALaggingServerIsGrantedWhenThatHasCaughtUp(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		holder := zksync.NewMutex(e.SessionAt(t, 1), proving.LockPath)
		held, err := holder.LockContext(t.Context())
		require.NoError(t, err)
		waiter := zksync.NewMutex(e.SessionAt(t, 0), proving.LockPath)
		got := lockAt(waiter)
		synctest.Wait()
		catchUp := e.Lag(0)
		start := time.Now()
		require.NoError(t, held.Unlock())
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Empty(t, got, "its server does not show that the holder is gone")
		require.False(t, held.Valid())
		catchUp()
		next := <-got
		require.Equal(t, 3*time.Second, next.at.Sub(start))
		require.NoError(t, next.Unlock())
	})
}

func TestWhoContendsThroughALaggingServerTrustsNoStaleList(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		late := zksync.NewMutex(e.SessionAt(t, 0), proving.LockPath)
		holder := zksync.NewMutex(e.SessionAt(t, 1), proving.LockPath)
		late.Lock() // makes the directory
		late.Unlock()
		catchUp := e.Lag(0)
		held, err := holder.LockContext(t.Context())
		require.NoError(t, err)
		got := lockAt(late)
		synctest.Wait()
		require.Len(t, e.Server(0).Children(proving.LockPath), 0, "an empty list is what its server would show")
		require.Len(t, e.Server(1).Children(proving.LockPath), 2)
		time.Sleep(3 * time.Second)
		catchUp()
		synctest.Wait()
		require.Empty(t, got)
		start := time.Now()
		require.NoError(t, held.Unlock())
		next := <-got
		require.Equal(t, start, next.at)
		require.NoError(t, next.Unlock())
	})
}

func TestContendersAreThoseThatTheServerKnowsOf(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		holder := zksync.NewMutex(e.SessionAt(t, 1), proving.LockPath)
		looker := e.SessionAt(t, 0)
		catchUp := e.Lag(0)
		held, err := holder.LockContext(t.Context())
		require.NoError(t, err)
		list, err := zksync.NewMutex(looker, proving.LockPath).Contenders(t.Context())
		require.NoError(t, err)
		require.Empty(t, list, "its server lags")
		// Verify is exact, so it has to wait.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		require.ErrorIs(t, zksync.Verify(ctx, looker, proving.LockPath, held.Token()), context.DeadlineExceeded)
		cancel()
		catchUp()
		list, err = zksync.NewMutex(looker, proving.LockPath).Contenders(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, zksync.Verify(t.Context(), looker, proving.LockPath, held.Token()))
		require.NoError(t, held.Unlock())
	})
}

// A holder that goes to a server that has not heard of its lock keeps it.
func TestALeaseSurvivesAMoveToALaggingServer(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 1)
		waiter := e.SessionAt(t, 2)
		catchUp := e.Lag(0)
		held, err := zksync.NewMutex(s, proving.LockPath).LockContext(t.Context())
		require.NoError(t, err)
		done := held.Done()
		got := lockAt(zksync.NewMutex(waiter, proving.LockPath))
		allow := e.Server(1).Refuse()
		e.Server(2).Refuse()
		e.Disconnect(s.ID())
		time.Sleep(2 * time.Second)
		require.Equal(t, -1, e.At(s.ID()), "the only server that it can reach is behind it")
		require.True(t, held.Valid())
		allow()
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, e.At(s.ID()))
		require.False(t, proving.IsClosed(done))
		require.Empty(t, got)
		catchUp()
		require.NoError(t, held.Unlock())
		require.NoError(t, (<-got).Unlock())
	})
}

func TestALeaseSurvivesTheElectionOfAnotherLeader(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		m := zksync.NewMutex(s, proving.LockPath)
		held, err := m.LockContext(t.Context())
		require.NoError(t, err)
		done := held.Done()
		next := zksync.NewMutex(e.SessionAt(t, 1, zksync.WithTimeout(10*time.Second)), proving.LockPath)
		got := lockAt(next)
		for _, fault := range []func() func(){
			func() func() { e.ElectLeader(0); return func() {} },
			func() func() { return e.Isolate(e.Leader()) },
			func() func() { l := e.Server(e.Leader()); l.Stop(); return l.Restart },
			func() func() { return e.Server(e.Leader()).Freeze() },
		} {
			undo := fault()
			time.Sleep(15 * time.Second)
			undo()
			e.WaitLeader(t)
			time.Sleep(15 * time.Second)
			require.False(t, proving.IsClosed(done))
			require.True(t, held.Valid())
			require.Empty(t, got)
			require.NoError(t, zksync.Verify(t.Context(), s, proving.LockPath, held.Token()))
		}
		start := time.Now()
		require.NoError(t, held.Unlock())
		last := <-got
		require.Equal(t, start, last.at)
		require.Positive(t, last.Token().Compare(held.Token()))
		require.NoError(t, last.Unlock())
	})
}
