//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wasDoneBefore checks that CMD did not run because somebody had run it.
func (p *program) wasDoneBefore(fragments ...string) {
	p.t.Helper()
	require.Equal(p.t, 0, p.wait(), "stderr: %s", p.stderr.String())
	line := p.stderr.String()
	require.True(p.t, strings.HasPrefix(line, "menagerie: "), "stderr: %s", line)
	require.Equal(p.t, 1, strings.Count(line, "\n"), "not one line: %s", line)
	for _, f := range append(fragments, "has been done") {
		require.Contains(p.t, line, f)
	}
	require.Empty(p.t, p.stdout.String())
}

func TestOnceRunsTheCommandOnceAndSaysWhoDidIt(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := run(t, "once", "/m/42", "--servers", s.addr, "--", "sh", "-c", `echo "ran $MENAGERIE_PATH $MENAGERIE_TOKEN"`)
	first.succeeded()
	require.Regexp(t, `^ran /m/42 [0-9a-f]{16}-[0-9a-f]{8}\n$`, first.stdout.String())
	host, _ := os.Hostname()
	for _, flag := range []string{"--try", "--wait=1m"} {
		run(t, "once", "/m/42", flag, "--servers", s.addr, "--", "echo", "ran").
			wasDoneBefore("/m/42", "by sh", host, time.Now().UTC().Format("2006-01-02"))
	}
	require.Zero(t, s.ChildCount("/m/42/lock"))
}

func TestOnceKeepsNoFailure(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for script, code := range map[string]int{"exit 7": 7, "exit 75": 75, "kill -TERM $$": 143} {
		p := run(t, "once", "/m", "--servers", s.addr, "--", "sh", "-c", script)
		require.Equal(t, code, p.wait(), script)
		require.Empty(t, p.stderr.String(), "CMD's failure is CMD's to explain")
		require.Zero(t, s.ChildCount("/m/lock"))
	}
	run(t, "once", "/m", "--servers", s.addr, "--", "true").succeeded()
}

func TestOfManyProcessesOneRunsTheCommandAndTheOthersWait(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	log := filepath.Join(t.TempDir(), "log")
	var all sync.WaitGroup
	for range 6 {
		p := start(t, "once", "/m", "--servers", s.addr, "--", "sh", "-c", `echo ran >>"$0"; sleep 0.3`, log)
		all.Go(func() { <-p.done })
	}
	all.Wait()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "ran\n", string(text))
}

func TestWhileAnotherOneRunsATryEndsWith75AndAWaitTakesOver(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := start(t, "once", "/m", "--servers", s.addr, "--", "sh", "-c", "echo running; exec sleep 600")
	first.prints("running")
	run(t, "once", "/m", "--try", "--servers", s.addr, "--", "echo", "ran").failed(exitNotObtained, "/m", "somebody else is running")
	before := time.Now()
	run(t, "once", "/m", "--wait", "3s", "--servers", s.addr, "--", "echo", "ran").failed(exitNotObtained, "/m", "3s")
	require.GreaterOrEqual(t, time.Since(before), 2*time.Second)
	require.Equal(t, 1, s.ChildCount("/m/lock"))
	next := start(t, "once", "/m", "--wait", "10m", "--servers", s.addr, "--", "echo", "ran")
	s.queued(t, "/m/lock", 2)
	first.signal(syscall.SIGTERM)
	require.Equal(t, 143, first.wait())
	next.succeeded()
	require.Equal(t, "ran\n", next.stdout.String())
}

func TestAnInterruptedWaiterForAOnceLeavesNoNode(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := start(t, "once", "/m", "--servers", s.addr, "--", "sh", "-c", "echo running; exec sleep 600")
	first.prints("running")
	w := start(t, "once", "/m", "--servers", s.addr, "--", "echo", "ran")
	s.queued(t, "/m/lock", 2)
	w.signal(syscall.SIGINT)
	w.failed(130, "/m", "interrupted")
	require.Equal(t, 1, s.ChildCount("/m/lock"))
}

// --wait bounds the waiting, not CMD.
func TestACommandMayTakeLongerThanTheWait(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "once", "/m", "--wait", "4s", "--servers", s.addr, "--", "sleep", "4.5").succeeded()
	run(t, "once", "/m", "--servers", s.addr, "--", "echo", "ran").wasDoneBefore("by sleep")
}

func TestALostTurnOfAOnceEndsTheCommandWith76(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "once", "/m", "--servers", s.addr, "--timeout", "3s", "--grace", "300ms", "--",
		"sh", "-c", `trap '' TERM; sleep 600 & echo "grandchild $!."; wait; sleep 600`)
	p.prints(".")
	s.Close()
	p.failed(exitLost, "/m", s.addr, "lost")
	requireGone(t, grandchild(t, p))
}

func TestAOnceWhoseNodeIsDeletedIsLostAndNotKept(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "once", "/m", "--servers", s.addr, "--", "sh", "-c", `trap 'exit 0' TERM; echo running; while :; do sleep 0.01; done 2>/dev/null`)
	p.prints("running")
	names := s.Children("/m/lock")
	require.Len(t, names, 1)
	s.Delete("/m/lock/" + names[0])
	p.failed(exitLost, "/m", "removed its node")
	again := run(t, "once", "/m", "--servers", s.addr, "--", "echo", "ran")
	again.succeeded()
	require.Equal(t, "ran\n", again.stdout.String())
}

func TestResetForgetsThatItWasDone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "once", "/m", "--reset", "--servers", s.addr).succeeded()
	for range 2 {
		p := run(t, "once", "/m", "--servers", s.addr, "--", "echo", "ran")
		p.succeeded()
		require.Equal(t, "ran\n", p.stdout.String())
		run(t, "once", "--reset", "/m", "--servers", s.addr).succeeded()
	}
	first := start(t, "once", "/m", "--servers", s.addr, "--", "sh", "-c", "echo running; exec sleep 600")
	first.prints("running")
	run(t, "once", "/m", "--reset", "--wait", "3s", "--servers", s.addr).failed(exitNotObtained, "/m", "3s")
}

func TestOnceUnderstandsResultsOfPrograms(t *testing.T) {
	t.Parallel()
	for kept, says := range map[string]string{
		"": "/m has been done\n", "\x1b[2J": "/m has been done\n", `{"command":"a\u001b[2Jb","host":"h\n","pid":1}`: "/m has been done by a[2Jb on h:1\n",
		`"text"`: "/m has been done\n", `{"at":"2026-01-02T03:04:05Z"}`: "/m has been done at 2026-01-02T03:04:05Z\n",
	} {
		require.Equal(t, says, wasDone("/m", []byte(kept))+"\n")
	}
}

func TestWrongCommandLinesOfOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"nothing":             {[]string{"once"}, "PATH and CMD are missing"},
		"no CMD":              {[]string{"once", "/a"}, "CMD is missing"},
		"bad path":            {[]string{"once", "a", "--", "true"}, "does not start with a slash"},
		"reset and CMD":       {[]string{"once", "/a", "--reset", "--", "true"}, "takes no CMD"},
		"reset without PATH":  {[]string{"once", "--reset"}, "PATH is missing"},
		"reset of a bad PATH": {[]string{"once", "a", "--reset"}, "does not start with a slash"},
		"reset and try":       {[]string{"once", "/a", "--reset", "--try"}, "exclude each other"},
		"wait and try":        {[]string{"once", "/a", "--wait", "1s", "--try", "--", "true"}, "exclude each other"},
		"flag of CMD":         {[]string{"once", "/a", "ls", "-l"}, "put -- in front of CMD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, c.args...).failed(exitUsage, c.says, "--help")
		})
	}
	addr := nobody(t)
	run(t, "once", "/a", "--servers", addr, "--connect-timeout", "300ms", "--", "true").failed(exitFailure, addr, "within 300ms")
	run(t, "once", "/a", "--servers", addr, "--wait", "300ms", "--", "true").failed(exitNotObtained, addr, "300ms")
	run(t, "once", "/a", "--servers", addr, "--connect-timeout", "300ms", "--reset").failed(exitFailure, addr, "within 300ms")
	run(t, "once", "/a", "--servers", addr, "--", "no-such-command-anywhere").failed(exitNotFound, "no-such-command-anywhere")
}
