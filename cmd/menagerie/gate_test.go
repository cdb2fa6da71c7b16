//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAGateHoldsProcessesUpUntilItIsOpened(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	gate := func(name string) *program { return run(t, "gate", name, "/g", "--wait", "10m", "--servers", s.addr) }
	gate("wait").succeeded() // it was never closed
	gate("close").succeeded()
	gate("close").succeeded()
	waits := start(t, "gate", "wait", "/g", "-v", "--servers", s.addr)
	waits.complains("menagerie: waiting for /g: closed by ")
	interrupted := start(t, "gate", "wait", "/g", "-v", "--servers", s.addr)
	interrupted.complains("menagerie: waiting for /g: closed by ")
	interrupted.signal(syscall.SIGTERM)
	require.Equal(t, 143, interrupted.wait())
	run(t, "gate", "wait", "/g", "--wait", "3s", "--servers", s.addr).failed(exitNotObtained, "gave up waiting for /g", "after 3s: closed by ", " pid ")
	select {
	case <-waits.done:
		require.Fail(t, "passed a closed gate", waits.stderr.String())
	default:
	}
	gate("open").succeeded()
	require.Equal(t, 0, waits.wait(), waits.stderr.String())
	gate("open").succeeded()
	gate("wait").succeeded()
}

func TestAGateIsRefusedThePathOfSomethingElse(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "sem", "/s", "--permits", "2", "--servers", s.addr, "--", "true").succeeded()
	for _, name := range []string{"close", "open", "wait"} {
		run(t, "gate", name, "/s", "--servers", s.addr).failed(exitUsage, "/s", "zksemaphore")
	}
}

func TestWrongCommandLinesOfGate(t *testing.T) {
	t.Parallel()
	for args, text := range map[string]string{
		"shut /g":          `unknown command "shut"`,
		"opne /g --help":   "did you mean open?",
		"close":            "PATH is missing",
		"open g":           "does not start with a slash",
		"wait /g x":        `"x"`,
		"wait /g --wait 0": "more than zero",
	} {
		run(t, append([]string{"gate"}, strings.Fields(args)...)...).failed(exitUsage, text)
	}
}
