//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALostLockEndsTheCommandWith76(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	// The command would like to end with 0.
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "3s", "--", "sh", "-c", `exec 2>/dev/null; trap 'exit 0' TERM; echo holding; while :; do sleep 0.01; done`)
	p.prints("holding")
	s.Close()
	p.failed(exitLost, "/a", s.addr, "lost", "session timeout of 3s")
}

func TestALockThatIsLostBecauseTheCommandStoodStillSaysSo(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "3s", "--", "sh", "-c", "echo holding; exec sleep 600")
	p.prints("holding")
	p.signal(syscall.SIGSTOP)
	time.Sleep(5 * time.Second)
	p.signal(syscall.SIGCONT)
	p.failed(exitLost, "lost /a", "this process stood still for at least ")
	require.NotContains(t, p.stderr.String(), "no server answered")
}

func TestALockWhoseNodeIsDeletedIsLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := holder(t, s, "/a")
	names := s.Children("/a")
	require.Len(t, names, 1)
	s.Delete("/a/" + names[0])
	p.failed(exitLost, "/a", "removed its node")

	p = holder(t, s, "/b", "-v")
	names = s.Children("/b")
	s.Delete("/b/" + names[0])
	require.Equal(t, exitLost, p.wait())
	require.Contains(t, p.stderr.String(), "menagerie: lease lost, path /b, ")
	require.NotContains(t, p.stderr.String(), "cause", "there is none but the removal")
}

func TestACommandThatIgnoresTheLossIsKilledWithItsWholeGroupAfterGrace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "3s", "--grace", "300ms", "--",
		"sh", "-c", `trap '' TERM; sleep 600 & echo "grandchild $!."; wait; sleep 600`)
	p.prints(".")
	s.Close()
	p.failed(exitLost, "/a")
	requireGone(t, grandchild(t, p))
}

func TestAStubbornGrandchildIsKilledAlthoughTheCommandHasEnded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "3s", "--grace", "300ms", "--",
		"sh", "-c", `(trap '' TERM; exec sleep 600) & echo "grandchild $!."; wait`)
	p.prints(".")
	s.Close()
	p.failed(exitLost, "/a")
	requireGone(t, grandchild(t, p))
}

func TestAKilledHolderTakesItsCommandAlongAndIsSucceeded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "3s", "--",
		"sh", "-c", `echo "grandchild $$. $MENAGERIE_TOKEN"; exec sleep 600`)
	h.prints("-")
	w := start(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", "echo $MENAGERIE_TOKEN")
	s.queued(t, "/a", 2)
	require.NoError(t, h.cmd.Process.Kill())
	w.succeeded()
	requireGone(t, grandchild(t, h))
	require.Greater(t, strings.TrimSpace(w.stdout.String()), strings.Fields(h.stdout.String())[2])
}

func TestALockSurvivesAShortRestartOfTheServer(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p, proceed := heldUntil(t, s, "20s")
	s.Stop()
	s.Restart()
	// The holder is back: its session is connected again.
	require.Eventually(t, func() bool { return len(contenders(t, s.addr, "/a")) == 1 }, patience, pause)
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	require.Equal(t, 4, p.wait(), p.stderr.String())
	s.queued(t, "/a", 0)
}

func TestACommandThatEndsWhileTheServersAreAwayKeepsItsExitCode(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p, proceed := heldUntil(t, s, "20s")
	s.Stop()
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	require.Equal(t, 4, p.wait(), p.stderr.String())
}

func TestALockThatEndsDuringARestartIsReleasedWithoutWaitingForTheTimeout(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p, proceed := heldUntil(t, s, "10m")
	pid := grandchild(t, p)
	s.Stop()
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	requireGone(t, pid)
	s.Restart()
	require.Equal(t, 4, p.wait(), p.stderr.String())
	s.queued(t, "/a", 0)
}

// heldUntil starts a lock on /a whose command ends with 4 when the file that is returned
// exists, and returns when it holds.
func heldUntil(t *testing.T, s *server, timeout string) (*program, string) {
	t.Helper()
	proceed := filepath.Join(t.TempDir(), "proceed")
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", timeout, "--",
		"sh", "-c", `echo "grandchild $$. holding"; while [ ! -e "$0" ]; do sleep 0.01; done; exit 4`, proceed)
	p.prints("holding")
	return p, proceed
}
