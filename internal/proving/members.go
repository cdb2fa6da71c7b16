package proving

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/ensemble"
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
