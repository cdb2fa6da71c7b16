//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResizeGrantsMoreAndTakesNothingAway(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	resize := func(n, prints string) {
		t.Helper()
		p := run(t, "sem", "/s", "--resize", n, "--servers", s.addr)
		p.succeeded()
		require.Equal(t, "/s: "+prints+"\n", p.stdout.String())
	}
	sem := func(permits string) *program {
		return start(t, "sem", "/s", "--permits", permits, "--servers", s.addr, "--", "sh", "-c", "echo holding; exec sleep 600")
	}
	first := sem("1")
	first.prints("holding")
	second := sem("1")
	s.queued(t, "/s/queue", 2)
	resize("2", "1 -> 2 permits")
	second.prints("holding")
	resize("1", "2 -> 1 permit")
	third := sem("1")
	s.queued(t, "/s/queue", 3)
	first.signal(syscall.SIGTERM)
	require.Equal(t, 143, first.wait())
	run(t, "sem", "/s", "--permits", "1", "--try", "--servers", s.addr, "--", "true").failed(exitNotObtained, "/s")
	require.Empty(t, third.stdout.String(), "one permit, which the second holds")
	resize("3", "1 -> 3 permits")
	third.prints("holding")
	resize("4", "3 -> 4 permits")
	for _, permits := range []string{"1", "4"} { // the first number, and the latest
		run(t, "sem", "/s", "--permits", permits, "--servers", s.addr, "--", "true").succeeded()
	}
	run(t, "sem", "/s", "--permits", "2", "--servers", s.addr, "--", "true").failed(exitUsage, "is 4, not 2")
	resize("0", "4 -> 0 permits")
	run(t, "sem", "/s", "--permits", "1", "--try", "--servers", s.addr, "--", "true").failed(exitNotObtained, "/s")
	require.Len(t, contenders(t, s.addr, "/s"), 2)
	require.True(t, alive(second.cmd.Process.Pid))
	require.True(t, alive(third.cmd.Process.Pid))
}

func TestResizeRefusesWhatIsNoSemaphore(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "sem", "/none", "--resize", "2", "--servers", s.addr).failed(exitNoSuchPath, "/none does not exist")
	require.Empty(t, s.Children("/none"))
	run(t, "latch", "down", "/l", "--count", "2", "--servers", s.addr).succeeded()
	for _, path := range []string{"/l", "/zookeeper"} {
		p := run(t, "sem", path, "--resize", "2", "--servers", s.addr)
		p.failed(exitRefused, "refused: "+path+" is no semaphore")
		require.Empty(t, p.stdout.String())
	}
}

func TestWrongCommandLinesOfResize(t *testing.T) {
	t.Parallel()
	for args, text := range map[string]string{
		"--resize 2":                "PATH is missing",
		"/s --resize -1":            "--resize is -1, want 0 or more",
		"/s --resize x":             "invalid argument",
		"/s --resize 2 --permits 2": "--resize and --permits exclude each other",
		"/s --resize 2 --weight 1":  "--resize and --weight exclude each other",
		"/s --resize 2 --wait 1s":   "--resize and --wait exclude each other",
		"/s --resize 2 --try":       "--resize and --try exclude each other",
		"/s --resize 2 -- true":     `--resize and CMD exclude each other: leave "true" out`,
	} {
		run(t, append([]string{"sem"}, strings.Fields(args)...)...).failed(exitUsage, text)
	}
}
