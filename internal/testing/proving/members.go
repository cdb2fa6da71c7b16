package proving

import (
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// AmongMembers runs f in virtual time on an ensemble of n in-process servers, the last of which leads. What it is about,
// followers that lag or are cut off, cannot be had from real servers at a given instant.
func AmongMembers(t *testing.T, n int, tick time.Duration, f func(t *testing.T, e *zktest.Ensemble), opts ...zktest.Option) {
	t.Helper()
	if os.Getenv(ensemble.ServersEnv) != "" {
		t.Skip("injects faults between the servers, so it ran with the in-process tests")
	}
	synctest.Test(t, func(t *testing.T) {
		f(t, zktest.RunEnsemble(t, n, append([]zktest.Option{zktest.WithTick(tick)}, opts...)...))
	})
}

// ComesBack has a session go round the members until it is where it began.
func ComesBack(t *testing.T, e *zktest.Ensemble, s *zksync.Session) {
	t.Helper()
	for range 2 {
		e.Disconnect(s.ID())
		time.Sleep(100 * time.Millisecond)
	}
	require.Equal(t, 0, e.At(s.ID()))
}

// RenewAtLagging ends the session of a client at member 1 of four. Member 2 says so, and the next session begins at member
// 3, which drops the connection before it has told the client of anything. So member 0 does not refuse the client, however
// much it lags.
func RenewAtLagging(t *testing.T, e *zktest.Ensemble, s *zksync.Session) {
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
