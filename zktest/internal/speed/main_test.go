package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryWorkloadRunsOnTheInProcessServer(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, "", time.Millisecond, 1, ""))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 1+len(workloads)*len(loads))
	for _, line := range lines[1:] {
		require.NotContains(t, line, " 0 ", "something was done")
		require.NotContains(t, line, "NaN")
	}
}

func TestAServerThatCannotBeReachedIsAnError(t *testing.T) {
	require.ErrorContains(t, run(&strings.Builder{}, "127.0.0.1:1", time.Millisecond, 1, ""), "warming up real")
}
