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

	"github.com/go-menagerie/menagerie/internal/zkserver"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestLockReturnsTheExitCodeOfTheCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for script, code := range map[string]int{
		"exit 0": 0, "exit 7": 7, "exit 75": 75, "kill -TERM $$": 143, "kill -KILL $$": 137,
	} {
		p := run(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", script)
		require.Equal(t, code, p.wait(), script)
		require.Empty(t, p.stderr.String(), "CMD's failure is CMD's to explain")
		require.Zero(t, s.ChildCount("/a"))
	}
}

func TestLockTellsTheCommandPathAndToken(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var last zksync.Token
	for range 3 {
		p := run(t, "lock", "/locks/a", "--servers", s.addr, "--", "sh", "-c", `echo "$MENAGERIE_PATH $MENAGERIE_TOKEN"`)
		p.succeeded()
		path, text, _ := strings.Cut(strings.TrimSpace(p.stdout.String()), " ")
		require.Equal(t, "/locks/a", path)
		token, err := zksync.ParseToken(text)
		require.NoError(t, err)
		require.Positive(t, token.Compare(last))
		last = token
	}
}

func TestFlagsMayStandAroundThePathAndTheRestBelongsToTheCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, args := range [][]string{
		{"--servers", s.addr, "lock", "--try", "/a", "--", "echo", "-n", "--try", "--", "x"},
		{"lock", "/a", "--servers", s.addr, "--wait=5s", "--", "echo", "-n", "--try", "--", "x"},
		{"lock", "--servers=" + s.addr, "/a", "--", "echo", "-n", "--try", "--", "x"},
	} {
		p := run(t, args...)
		p.succeeded()
		require.Equal(t, "--try -- x", p.stdout.String())
	}
	// Without -- it is only taken if it cannot be misunderstood.
	p := run(t, "lock", "--servers", s.addr, "/a", "echo", "x", "y")
	p.succeeded()
	require.Equal(t, "x y\n", p.stdout.String())
}

func TestLockPassesStandardInputOn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	cmd := exec.Command(binary, "lock", "/a", "--servers", s.addr, "--", "cat")
	cmd.Stdin = strings.NewReader("hello")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "hello", string(out))
}

func TestAMissingCommandIsNoticedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	addr := nobody(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o644))
	for name, code := range map[string]int{
		"no-such-command-anywhere": exitNotFound, "/no/such/file": exitNotFound, "./nope": exitNotFound, "": exitNotFound,
		plain: exitCannotRun, dir: exitCannotRun,
	} {
		// Nobody listens: it is not even tried.
		p := run(t, "lock", "/a", "--servers", addr, "--", name)
		p.failed(code, name)
	}
}

func TestACommandThatTheKernelRefusesReleasesTheLock(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	program := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(program, []byte("\x00\x01\x02\x03"), 0o755))
	run(t, "lock", "/a", "--servers", s.addr, "--", program).failed(exitCannotRun, program)
	require.Zero(t, s.ChildCount("/a"))
}

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
	p := run(t, "lock", "/a", "--wait", "400ms", "--servers", s.addr, "--", "echo", "ran")
	p.failed(exitNotObtained, "/a", s.addr, "400ms")
	require.GreaterOrEqual(t, time.Since(before), 300*time.Millisecond)
	require.Empty(t, p.stdout.String())
	require.Equal(t, 1, s.ChildCount("/a"))
}

func TestWaitCoversConnecting(t *testing.T) {
	t.Parallel()
	addr := nobody(t)
	run(t, "lock", "/a", "--wait", "300ms", "--servers", addr, "--", "true").failed(exitNotObtained, addr, "300ms")
	// An explicit --timeout still bounds how long nobody is tried.
	run(t, "lock", "/a", "--wait", "10m", "--timeout", "300ms", "--servers", addr, "--", "true").failed(exitFailure, "cannot reach", addr)
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

func TestAWaiterWithoutServersGivesUpAfterTheTimeout(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a", "--grace", "1ms")
	w := start(t, "lock", "/a", "--timeout", "500ms", "--servers", s.addr, "--", "true")
	s.queued(t, "/a", 2)
	s.Close()
	w.failed(exitFailure, "cannot reach", s.addr)
}

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
	w := start(t, "lock", "/a", "--timeout", "10m", "--servers", l.Addr().String(), "--", "true")
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

func TestALostLockEndsTheCommandWith76(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	// The command would like to end with 0.
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "500ms", "--", "sh", "-c", `exec 2>/dev/null; trap 'exit 0' TERM; echo holding; while :; do sleep 0.01; done`)
	p.prints("holding")
	s.Close()
	p.failed(exitLost, "/a", s.addr, "lost", "session timeout of 500ms")
}

func TestALockWhoseNodeIsDeletedIsLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := holder(t, s, "/a")
	names, _ := s.Children("/a")
	require.Len(t, names, 1)
	_, code := s.Do(zkserver.Call{Op: zkserver.OpDelete, Path: "/a/" + names[0], Version: -1}, 0)
	require.Zero(t, code)
	p.failed(exitLost, "/a", "removed its node")
}

func TestACommandThatIgnoresTheLossIsKilledWithItsWholeGroupAfterGrace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "500ms", "--grace", "300ms", "--",
		"sh", "-c", `trap '' TERM; sleep 600 & echo "grandchild $!."; wait; sleep 600`)
	p.prints(".")
	s.Close()
	p.failed(exitLost, "/a")
	requireGone(t, grandchild(t, p))
}

func TestAStubbornGrandchildIsKilledAlthoughTheCommandHasEnded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "500ms", "--grace", "300ms", "--",
		"sh", "-c", `(trap '' TERM; exec sleep 600) & echo "grandchild $!."; wait`)
	p.prints(".")
	s.Close()
	p.failed(exitLost, "/a")
	requireGone(t, grandchild(t, p))
}

func TestAKilledHolderTakesItsCommandAlongAndIsSucceeded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := start(t, "lock", "/a", "--servers", s.addr, "--timeout", "500ms", "--",
		"sh", "-c", `echo "grandchild $$. $MENAGERIE_TOKEN"; exec sleep 600`)
	h.prints("-")
	w := start(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", "echo $MENAGERIE_TOKEN")
	s.queued(t, "/a", 2)
	require.NoError(t, h.cmd.Process.Kill())
	w.succeeded()
	requireGone(t, grandchild(t, h))
	require.Greater(t, strings.TrimSpace(w.stdout.String()), strings.Fields(h.stdout.String())[2])
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
