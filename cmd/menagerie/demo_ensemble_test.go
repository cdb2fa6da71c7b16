//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

func TestDemoIsRightWhileEachOfThreeRealServersIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	e := ensemble.ForTest(t, 3)
	for _, s := range e.Servers() { // the leader is one of them
		p := start(t, "demo", "--workers", "4", "--rounds", "100", "--kill", "--json", "--timeout", "6s", "--servers", e.Connect())
		workersOf(t, p, 4)
		require.NoError(t, s.Kill())
		require.NotContains(t, p.stderr.String(), "have met", "the demo was over before a server died")
		require.NoError(t, s.Start(t.Context()))
		<-p.done // it gives up by itself when it stands still
		require.Equal(t, 0, p.wait(), p.stderr.String())
		require.Equal(t, demoResult{Workers: 4, Rounds: 100, Expected: 400, Counter: 400, TokensMonotonic: true, Killed: 1}, p.lastLine())
	}
}
