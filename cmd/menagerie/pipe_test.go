//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logTo starts the binary with this file as its standard error.
func logTo(t *testing.T, stderr *os.File, args ...string) *program {
	t.Helper()
	return startBy(func(c *exec.Cmd) error { c.Stderr = stderr; return c.Start() }, t, nil, args...)
}

// closedPipe is a pipe whose reader has ended.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// fullPipe is a pipe whose reader has stopped.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	require.NoError(t, w.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = w.Write(make([]byte, 4<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	return w
}

// holders are command lines that run CMD while they hold something at /a, or after they have waited there.
var holders = map[string][]string{
	"lock":    {"lock", "/a"},
	"rlock":   {"rlock", "/a"},
	"sem":     {"sem", "/a", "--permits", "1"},
	"elect":   {"elect", "/a"},
	"once":    {"once", "/a"},
	"hold":    {"hold", "/a", "--owner", "o"},
	"receive": {"queue", "receive", "/a"},
	"cron":    {"cron", "/a", "--every", "1s"},
	"group":   {"group", "join", "/a"},
}

// The servers restart while CMD runs, which is reported on standard error.
func TestALogThatIsNotReadIsNoLossOfAHold(t *testing.T) {
	t.Parallel()
	for name, args := range holders {
		for kind, pipe := range map[string]func(*testing.T) *os.File{"closed": closedPipe, "full": fullPipe} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s := startServer(t)
				if name == "receive" {
					run(t, "queue", "put", "/a", "x", "--servers", s.addr).succeeded()
				}
				proceed := filepath.Join(t.TempDir(), "proceed")
				p := logTo(t, pipe(t), append(append([]string{}, args...), "-vv", "--timeout", "20s", "--servers", s.addr,
					"--", "sh", "-c", `echo running; while [ ! -e "$0" ]; do sleep 0.01; done; exit 4`, proceed)...)
				p.prints("running")
				s.Stop()
				s.Restart()
				require.Eventually(t, func() bool { all := s.Sessions(); return len(all) == 1 && all[0].Connected }, patience, pause)
				if name == "cron" {
					p.signal(syscall.SIGTERM)
					require.Equal(t, 143, p.wait())
					return
				}
				require.NoError(t, os.WriteFile(proceed, nil, 0o600))
				require.Equal(t, 4, p.wait())
			})
		}
	}
}

func TestALogThatIsNotReadDelaysNoTurn(t *testing.T) {
	t.Parallel()
	for kind, pipe := range map[string]func(*testing.T) *os.File{"closed": closedPipe, "full": fullPipe} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			first := holder(t, s, "/a")
			next := logTo(t, pipe(t), "lock", "/a", "-v", "--servers", s.addr, "--", "echo", "its turn")
			barrier := logTo(t, pipe(t), "barrier", "/b", "--parties", "2", "-v", "--servers", s.addr, "--", "echo", "all")
			s.queued(t, "/a", 2)
			s.waiting(t, "/b", 1)
			shown := start(t, "lock", "/a", "-v", "--servers", s.addr, "--", "true") // which began to queue after them
			require.Eventually(t, func() bool { return strings.Contains(shown.stderr.String(), "in line") }, patience, pause)
			first.signal(syscall.SIGTERM)
			next.prints("its turn")
			require.Equal(t, 0, next.wait())
			run(t, "barrier", "/b", "--parties", "2", "--servers", s.addr).succeeded()
			barrier.prints("all")
			require.Equal(t, 0, barrier.wait())
		})
	}
}

// The lease is watched although the log has stopped.
func TestALossEndsTheCommandThoughTheLogHasStopped(t *testing.T) {
	t.Parallel()
	for kind, pipe := range map[string]func(*testing.T) *os.File{"closed": closedPipe, "full": fullPipe} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			p := logTo(t, pipe(t), "lock", "/a", "-vv", "--timeout", "3s", "--grace", "300ms", "--servers", s.addr, "--",
				"sh", "-c", `trap '' TERM; sleep 600 & echo "grandchild $!."; wait; sleep 600`)
			p.prints(".")
			s.Close()
			require.Equal(t, exitLost, p.wait())
			requireGone(t, grandchild(t, p))
		})
	}
}

func TestACommandHasTheUsualSIGPIPE(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := logTo(t, closedPipe(t), "lock", "/a", "-v", "--servers", s.addr, "--", "sh", "-c", "kill -PIPE $$; echo survived")
	require.Equal(t, 141, p.wait())
	require.Empty(t, p.stdout.String())
}

// As all programs in a pipeline do.
func TestACommandThatPrintsEndsWithItsReader(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := holder(t, s, "/a")
	defer h.signal(syscall.SIGTERM)
	w := closedPipe(t)
	p := startBy(func(c *exec.Cmd) error { c.Stdout = w; return c.Start() }, t, nil, "ls", "/a", "--watch", "--servers", s.addr)
	p.wait()
	require.Equal(t, syscall.SIGPIPE, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	require.Empty(t, p.stderr.String())
}
