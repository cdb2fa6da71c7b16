//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnInterruptedWaiterLeavesNoNode(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a")
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		w := start(t, "lock", "/a", "--servers", s.addr, "--", "echo", "ran")
		s.queued(t, "/a", 2)
		w.signal(sig)
		w.failed(code, "/a", "interrupted")
		require.Equal(t, 1, s.ChildCount("/a"))
		require.Empty(t, w.stdout.String())
	}
}

func TestAnInterruptedConnectorEnds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer l.Close()
	w := start(t, "lock", "/a", "--connect-timeout", "10m", "--servers", l.Addr().String(), "--", "true")
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	w.signal(syscall.SIGINT)
	w.failed(130, "interrupted")
}

func TestSignalsArePassedOnAndTheLockIsHeldUntilTheCommandHasEnded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	script := `exec 2>/dev/null; trap 'echo got it; while [ ! -e "$0" ]; do sleep 0.01; done; exit 9' ` + "%s" + `; echo ready; while :; do sleep 0.01; done`
	for name, sig := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP} {
		proceed := filepath.Join(t.TempDir(), "proceed")
		p := start(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", strings.Replace(script, "%s", name, 1), proceed)
		p.prints("ready")
		p.signal(sig)
		p.prints("got it")
		require.Equal(t, 1, s.ChildCount("/a"), "released although the command still runs")
		require.NoError(t, os.WriteFile(proceed, nil, 0o600))
		require.Equal(t, 9, p.wait())
		require.Zero(t, s.ChildCount("/a"))
		require.Empty(t, p.stderr.String())
	}
}

func TestSignalsReachTheWholeGroup(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", `sleep 600 & echo "grandchild $!."; wait`)
	p.prints(".")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	requireGone(t, grandchild(t, p))
}

// grandchild is the pid that a script has printed as "grandchild PID.".
func grandchild(t *testing.T, p *program) int {
	t.Helper()
	_, rest, ok := strings.Cut(p.stdout.String(), "grandchild ")
	require.True(t, ok, p.stdout.String())
	text, _, _ := strings.Cut(rest, ".")
	pid, err := strconv.Atoi(text)
	require.NoError(t, err)
	return pid
}

// requireGone waits until a process has ended, whether or not anybody has taken notice.
func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(pid) }, patience, pause, "process %d still runs", pid)
}
