//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A holder that stands still is found out after two thirds of its session timeout.
func TestAProbablyDeadHolderIsNamed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "30s", "--", "sh", "-c", "echo holding; exec sleep 600")
	h.prints("holding")
	waiter := start(t, "lock", "/a", "-v", "--servers", s.addr, "--", "true")
	s.queued(t, "/a", 2)
	alive := run(t, "ls", "/a", "--servers", s.addr)
	alive.succeeded()
	require.NotContains(t, alive.stdout.String(), "dead")
	require.NoError(t, h.cmd.Process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = h.cmd.Process.Signal(syscall.SIGCONT) })

	const heard = `last heard \d+ s ago: free in at most \d+ s`
	waiter.complains("last heard")
	require.Regexp(t, `menagerie: waiting for /a: held by \S+ pid \d+ for \d+s, `+heard+`\n`, waiter.stderr.String())
	ls := run(t, "ls", "/a", "--servers", s.addr)
	ls.succeeded()
	require.Regexp(t, `\n\S+ pid \d+ is probably dead: `+heard+`\n$`, ls.stdout.String())
	require.Regexp(t, heard, contenders(t, s.addr, "/a")[0].Heard)
	for _, flag := range [][]string{{"--try"}, {"--wait", "1s"}} {
		p := run(t, append([]string{"lock", "/a", "--servers", s.addr}, append(flag, "--", "true")...)...)
		p.failed(exitNotObtained, "held by")
		require.Regexp(t, heard, p.stderr.String())
	}
	waiter.signal(syscall.SIGTERM)
	require.Equal(t, 143, waiter.wait())
}
