package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
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
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		holder := zksync.NewMutex(e.SessionAt(t, 1), lockPath)
		held, err := holder.LockContext(t.Context())
		require.NoError(t, err)
		waiter := zksync.NewMutex(e.SessionAt(t, 0), lockPath)
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
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		late := zksync.NewMutex(e.SessionAt(t, 0), lockPath)
		holder := zksync.NewMutex(e.SessionAt(t, 1), lockPath)
		late.Lock() // makes the directory
		late.Unlock()
		catchUp := e.Lag(0)
		held, err := holder.LockContext(t.Context())
		require.NoError(t, err)
		got := lockAt(late)
		synctest.Wait()
		require.Len(t, e.Server(0).Children(lockPath), 0, "an empty list is what its server would show")
		require.Len(t, e.Server(1).Children(lockPath), 2)
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
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		holder := zksync.NewMutex(e.SessionAt(t, 1), lockPath)
		looker := e.SessionAt(t, 0)
		catchUp := e.Lag(0)
		held, err := holder.LockContext(t.Context())
		require.NoError(t, err)
		list, err := zksync.NewMutex(looker, lockPath).Contenders(t.Context())
		require.NoError(t, err)
		require.Empty(t, list, "its server lags")
		// Verify is exact, so it has to wait.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		require.ErrorIs(t, zksync.Verify(ctx, looker, lockPath, held.Token()), context.DeadlineExceeded)
		cancel()
		catchUp()
		list, err = zksync.NewMutex(looker, lockPath).Contenders(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, zksync.Verify(t.Context(), looker, lockPath, held.Token()))
		require.NoError(t, held.Unlock())
	})
}

// A holder that goes to a server that has not heard of its lock keeps it.
func TestALeaseSurvivesAMoveToALaggingServer(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 1)
		waiter := e.SessionAt(t, 2)
		catchUp := e.Lag(0)
		held, err := zksync.NewMutex(s, lockPath).LockContext(t.Context())
		require.NoError(t, err)
		done := held.Done()
		got := lockAt(zksync.NewMutex(waiter, lockPath))
		allow := e.Server(1).Refuse()
		e.Server(2).Refuse()
		e.Disconnect(s.ID())
		time.Sleep(2 * time.Second)
		require.Equal(t, -1, e.At(s.ID()), "the only server that it can reach is behind it")
		require.True(t, held.Valid())
		allow()
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, e.At(s.ID()))
		require.False(t, isClosed(done))
		require.Empty(t, got)
		catchUp()
		require.NoError(t, held.Unlock())
		require.NoError(t, (<-got).Unlock())
	})
}

func TestALeaseSurvivesTheElectionOfAnotherLeader(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		m := zksync.NewMutex(s, lockPath)
		held, err := m.LockContext(t.Context())
		require.NoError(t, err)
		done := held.Done()
		next := zksync.NewMutex(e.SessionAt(t, 1, zksync.WithTimeout(10*time.Second)), lockPath)
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
			require.False(t, isClosed(done))
			require.True(t, held.Valid())
			require.Empty(t, got)
			require.NoError(t, zksync.Verify(t.Context(), s, lockPath, held.Token()))
		}
		start := time.Now()
		require.NoError(t, held.Unlock())
		last := <-got
		require.Equal(t, start, last.at)
		require.Positive(t, last.Token().Compare(held.Token()))
		require.NoError(t, last.Unlock())
	})
}

// An observer loses its session, and the connection of the next one before that has had an answer. The server that it
// comes to then has not heard of the leader that was told already.
func TestAnObserverAtALaggingServerTellsOfNoLeaderThatWasTheOneBefore(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		lead := func(id string) *zksync.Lease {
			l, err := zkelection.New(e.SessionAt(t, 2), electionPath, zkelection.Candidate{ID: id}).Campaign(t.Context())
			require.NoError(t, err)
			return l
		}
		s := e.SessionAt(t, 1, zksync.WithTimeout(10*time.Second))
		first := s.ID()
		seen := make(chan string, 100)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		l := lead("first")
		go func() {
			defer close(ended)
			for c, err := range zkelection.New(s, electionPath, zkelection.Candidate{ID: "observer"}).Observe(ctx) {
				switch {
				case errors.Is(err, zksync.ErrNoLeader):
					seen <- "nobody"
				case err == nil:
					seen <- c.ID
				}
			}
		}()
		told := func(want ...string) {
			t.Helper()
			time.Sleep(100 * time.Millisecond)
			var got []string
			for len(seen) > 0 {
				got = append(got, <-seen)
			}
			require.Equal(t, want, got)
		}
		told("first")
		catchUp := e.Lag(0)
		require.NoError(t, l.Unlock())
		told("nobody")
		l = lead("second")
		told("second")
		asked, answer := make(chan int64, 100), make(chan struct{})
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			switch q.Op {
			case zktest.Connect, zktest.Ping, zktest.CloseSession:
				return zktest.Verdict{}
			}
			if id := s.ID(); id == 0 || id == first || q.Session != id {
				return zktest.Verdict{}
			}
			asked <- q.Session
			return zktest.Verdict{Hold: answer}
		})
		e.Server(1).Expire(first)
		next := <-asked
		for i := range 2 {
			defer e.Server(i + 1).Refuse()()
		}
		e.Disconnect(next)
		close(answer)
		time.Sleep(time.Second)
		require.Equal(t, 0, e.At(s.ID()))
		told()
		catchUp()
		told()
		require.NoError(t, l.Unlock())
		told("nobody")
		stop()
		<-ended
	})
}
