//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBenchPrintsAnArrayOfResults(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := run(t, "bench", "--json", "--duration", "50ms", "--clients", "1,2", "--servers", s.addr)
	require.Equal(t, 0, p.wait(), p.stderr.String())
	require.NotContains(t, p.stderr.String(), "in-process")
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &rows))
	require.Len(t, rows, 6)
	for _, r := range rows {
		require.ElementsMatch(t, []string{"peer", "scenario", "clients", "ops_per_s", "p50_us", "p99_us", "requests_per_op"}, keys(r))
		require.Positive(t, r["ops_per_s"])
	}
	left, _ := s.Children("/")
	require.Equal(t, []string{"zookeeper"}, left)
}

func TestBenchWithoutServersSaysThatItMeasuresItself(t *testing.T) {
	t.Parallel()
	p := run(t, "bench", "--duration", "20ms", "--clients", "1")
	require.Equal(t, 0, p.wait(), p.stderr.String())
	require.Contains(t, p.stderr.String(), "in-process ZooKeeper; a real ensemble has other numbers")
	lines := strings.Split(strings.TrimSuffix(p.stdout.String(), "\n"), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, []string{"scenario", "clients", "peer", "ops/s", "p50", "us", "p99", "us", "requests/op"}, strings.Fields(lines[0]))
}

func TestAnInterruptedBenchLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "bench", "--duration", "1h", "--clients", "4", "--servers", s.addr)
	require.Eventually(t, func() bool { return len(s.Sessions()) >= 3 }, patience, pause)
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())
	require.Contains(t, p.stderr.String(), "menagerie: interrupted by SIGINT\n")
	left, _ := s.Children("/")
	require.Equal(t, []string{"zookeeper"}, left)
}
