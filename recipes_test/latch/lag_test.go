package latch_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// renewAtLagging ends the session of a client at member 1 of four. Member 2 says so, and the next session begins at member
// 3, which drops the connection before it has told the client of anything. So member 0 does not refuse the client, however
// much it lags.
func renewAtLagging(t *testing.T, e *zktest.Ensemble, s *zksync.Session) {
	t.Helper()
	var mu sync.Mutex // members decide about requests at the same time
	begun := make(map[int64]bool)
	for _, x := range e.Server(3).Sessions() {
		begun[x.ID] = true
	}
	remove := e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if q.Op == zktest.Connect || begun[q.Session] {
			return zktest.Verdict{}
		}
		begun[q.Session] = true
		return zktest.Verdict{Fate: zktest.LoseRequest}
	})
	defer remove()
	require.True(t, e.Expire(s.ID()))
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	require.Equal(t, 0, e.At(s.ID()))
}

func stillToCome(t *testing.T, l *zklatch.Latch, want int) {
	t.Helper()
	n, err := l.Count(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, n)
}

// The server may catch up at once, or after it has said that the node is not there which says that the latch is closed.
func TestAWaitAtALatchIsNotMisledByALaggingServerInItsNextSession(t *testing.T) {
	for _, between := range []bool{false, true} {
		t.Run(fmt.Sprintf("catches up between two reads: %t", between), func(t *testing.T) {
			proving.AmongMembers(t, 4, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				other := zklatch.New(e.SessionAt(t, 3), proving.LatchPath, 1)
				s := e.SessionAt(t, 1)
				l := zklatch.New(s, proving.LatchPath, 1)
				catchUp := e.Lag(0)
				stillToCome(t, other, 1) // makes the nodes
				wait := proving.Waits(t.Context(), l.Wait)
				synctest.Wait()
				require.True(t, wait.Pending())
				look := zktest.On(zktest.GetData, proving.LatchPath)
				if between {
					look.Hold()
				}
				held := e.Intercept(look)
				renewAtLagging(t, e, s)
				catchUp()
				time.Sleep(100 * time.Millisecond)
				held.Remove()
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				require.True(t, wait.Pending(), "the latch is closed: %v", wait.Err)
				require.NoError(t, other.CountDown(t.Context()))
				<-wait.Done
				require.NoError(t, wait.Err)
			})
		})
	}
}
