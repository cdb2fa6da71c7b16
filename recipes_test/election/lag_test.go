package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// An observer loses its session, and the connection of the next one before that has had an answer. The server that it
// comes to then has not heard of the leader that was told already.
func TestAnObserverAtALaggingServerTellsOfNoLeaderThatWasTheOneBefore(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		lead := func(id string) *zksync.Lease {
			l, err := zkelection.New(e.SessionAt(t, 2), proving.ElectionPath, zkelection.Candidate{ID: id}).Campaign(t.Context())
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
			for c, err := range zkelection.New(s, proving.ElectionPath, zkelection.Candidate{ID: "observer"}).Observe(ctx) {
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
