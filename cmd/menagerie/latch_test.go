//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALatchLetsLateProcessesPass(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	down := func() {
		run(t, "latch", "down", "/l", "--count", "2", "--servers", s.addr).succeeded()
	}
	early := start(t, "latch", "wait", "/l", "--count", "2", "--wait", "10m", "--servers", s.addr)
	down()
	run(t, "latch", "wait", "/l", "--count", "2", "--wait", "3s", "--servers", s.addr).failed(exitNotObtained, "gave up waiting for /l", "after 3s: 1 of 2 events counted down")
	interrupted := start(t, "latch", "wait", "/l", "--count", "2", "-v", "--servers", s.addr)
	require.Eventually(t, func() bool { return strings.Contains(interrupted.stderr.String(), "waiting for /l") }, patience, pause)
	interrupted.signal(syscall.SIGTERM)
	require.Equal(t, 143, interrupted.wait())
	down()
	early.succeeded()
	down() // one too many
	began := time.Now()
	run(t, "latch", "wait", "/l", "--count", "2", "--servers", s.addr).succeeded()
	require.Less(t, time.Since(began), time.Minute)
	run(t, "latch", "wait", "/l", "--count", "3", "--servers", s.addr).failed(exitUsage, "number of events of the latch is 2, not 3")
}

func TestWrongCommandLinesOfLatch(t *testing.T) {
	t.Parallel()
	for args, text := range map[string]string{
		"up /l":               "unknown command",
		"down":                "PATH is missing",
		"down l --count 1":    "does not start with a slash",
		"wait /l":             "--count is missing",
		"wait /l --count 0":   "whole number",
		"wait /l x --count 1": `"x"`,
	} {
		run(t, append([]string{"latch"}, strings.Fields(args)...)...).failed(exitUsage, text)
	}
}
