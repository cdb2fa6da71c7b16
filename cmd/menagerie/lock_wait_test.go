//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestTryGivesUpAtOnceAndLeavesNoNode(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a")
	p := run(t, "lock", "/a", "--try", "--servers", s.addr, "--", "echo", "ran")
	p.failed(exitNotObtained, "/a", "not free")
	require.Empty(t, p.stdout.String())
	require.Equal(t, 1, s.ChildCount("/a"))
}

func TestWaitGivesUpInTimeAndLeavesNoNode(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a")
	before := time.Now()
	p := run(t, "lock", "/a", "--wait", "3s", "--servers", s.addr, "--", "echo", "ran")
	p.failed(exitNotObtained, "/a", s.addr, "3s")
	require.NotContains(t, p.stderr.String(), "reached")
	require.GreaterOrEqual(t, time.Since(before), 2*time.Second)
	require.Empty(t, p.stdout.String())
	require.Equal(t, 1, s.ChildCount("/a"))
}

func TestWaitCoversConnecting(t *testing.T) {
	t.Parallel()
	addr := nobody(t)
	run(t, "lock", "/a", "--wait", "2s", "--servers", addr, "--", "true").failed(exitNotObtained, addr, "2s", "no server could be reached")
	// An explicit --connect-timeout still bounds how long nobody is tried.
	run(t, "lock", "/a", "--wait", "10m", "--connect-timeout", "2s", "--servers", addr, "--", "true").failed(exitFailure, "cannot reach", addr)
}

// Of servers that are there and do not answer, the line with which a wait ends says what they did; it asks whether one
// is running only where there may be none.
func TestAWaitThatEndsBeforeTheFirstAttemptSaysWhatTheServersDid(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes connections, nobody says anything
	require.NoError(t, err)
	defer l.Close()
	for _, args := range [][]string{{"lock", "/a", "--", "true"}, {"once", "/a", "--", "true"}} {
		p := run(t, append([]string{args[0], "--wait", "3s", "--servers", l.Addr().String()}, args[1:]...)...)
		p.failed(exitNotObtained, "no server could be reached (", ": no answer for ", "s: is this ZooKeeper's port, does it want TLS, or does the server hang?)")
		require.NotContains(t, p.stderr.String(), "running there")
	}
	p := run(t, "lock", "/a", "--wait", "3s", "--servers", nobody(t), "--", "true")
	p.failed(exitNotObtained, "no server could be reached (", "connection refused", "is a server running there?")
}

func TestAWaiterGetsTheLockWhenItIsReleased(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := holder(t, s, "/a")
	w := start(t, "lock", "/a", "--wait", "10m", "--servers", s.addr, "--", "echo", "ran")
	s.queued(t, "/a", 2)
	h.signal(syscall.SIGTERM)
	w.succeeded()
	require.Equal(t, "ran\n", w.stdout.String())
	require.Equal(t, 143, h.wait())
	require.Zero(t, s.ChildCount("/a"))
}

func TestAWaiterWithoutATimeOutlastsAnyOutage(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a", "--grace", "1ms")
	w := start(t, "lock", "/a", "--connect-timeout", "1s", "--servers", s.addr, "--", "echo", "ran")
	s.queued(t, "/a", 2)
	s.Stop()
	select {
	case <-w.done:
		require.Fail(t, "gave up", w.stderr.String())
	case <-time.After(5 * time.Second): // longer than its --connect-timeout, and than the session of the holder
	}
	s.RestartEmpty()
	require.Equal(t, 0, w.wait(), w.stderr.String())
	require.Equal(t, "ran\n", w.stdout.String())
}

func TestCompetingLocksNeverOverlap(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := t.TempDir()
	// mkdir fails if the directory exists: only one may be inside.
	script := `mkdir "$0/inside" || exit 99; n=$(cat "$0/n" 2>/dev/null || echo 0); sleep 0.01; echo $((n+1)) > "$0/n"; rmdir "$0/inside"`
	const processes, rounds = 4, 5
	done := make(chan []int, processes)
	for range processes {
		go func() {
			var codes []int
			for range rounds {
				cmd := exec.Command(binary, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", script, dir)
				_ = cmd.Run()
				codes = append(codes, cmd.ProcessState.ExitCode())
			}
			done <- codes
		}()
	}
	for range processes {
		require.Equal(t, make([]int, rounds), <-done)
	}
	n, err := os.ReadFile(filepath.Join(dir, "n"))
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(processes*rounds), strings.TrimSpace(string(n)))
	require.Zero(t, s.ChildCount("/a"))
}

// Acceptance 22.
func TestTwoProcessesOnOneHostNeverShareAnIdentity(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const processes = 8
	for range processes {
		start(t, "lock", "/a", "--servers", s.addr, "--", "sleep", "600")
	}
	s.queued(t, "/a", processes)
	rows := contenders(t, s.addr, "/a")
	require.Len(t, rows, processes)
	pids, sessions, uuids := map[int]bool{}, map[string]bool{}, map[string]bool{}
	held := 0
	for _, r := range rows {
		pids[r.Owner.PID], sessions[r.Session] = true, true
		uuid, _, ok := strings.Cut(strings.TrimPrefix(r.Node, "/a/_c_"), "-lock-")
		require.True(t, ok, r.Node)
		uuids[uuid] = true
		if r.State == zksync.Held {
			held++
		}
	}
	require.Equal(t, 1, held)
	require.Len(t, pids, processes)
	require.Len(t, sessions, processes)
	require.Len(t, uuids, processes)
}
