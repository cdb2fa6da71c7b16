//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const cronQueue = "/c/zkcron/job/queue"

// cronLog has a line for each run.
func cronLog(t *testing.T) (path string, lines func() []string) {
	path = filepath.Join(t.TempDir(), "log")
	return path, func() []string {
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		require.NoError(t, err)
		return strings.Fields(string(data))
	}
}

func TestCronRunsTheCommandOnceATickAndAnotherProcessTakesOver(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	log, lines := cronLog(t)
	args := []string{"cron", "/c", "--every", "1s", "--missed", "all", "--timeout", "3s", "--servers", s.addr, "--",
		"sh", "-c", `echo "$MENAGERIE_SCHEDULED/$MENAGERIE_TOKEN" >>"$0"`, log}
	first := start(t, args...)
	s.queued(t, cronQueue, 1)
	second := start(t, args...)
	s.queued(t, cronQueue, 2)
	ran := func(n int) func() bool { return func() bool { return len(lines()) >= n } }
	require.Eventually(t, ran(2), patience, pause)
	require.NoError(t, first.cmd.Process.Kill())
	before := len(lines())
	s.queued(t, cronQueue, 1)
	require.Eventually(t, ran(before+3), patience, pause)
	second.signal(syscall.SIGTERM)
	second.failed(143, "SIGTERM")
	require.Zero(t, s.ChildCount(cronQueue))
	var last string
	var due time.Time
	twice := 0
	for _, line := range lines() {
		at, token, _ := strings.Cut(line, "/")
		require.Greater(t, token, last, "tokens grow")
		last = token
		scheduled, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		if scheduled.Equal(due.Add(-time.Second)) {
			twice++ // the one that was killed
			continue
		}
		require.True(t, due.IsZero() || due.Equal(scheduled), "%v: want %v", lines(), due)
		due = scheduled.Add(time.Second)
	}
	require.LessOrEqual(t, twice, 1)
}

func TestCronTellsTheCommandOfItsTickAndReportsAFailure(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "cron", "/c", "--name", "nightly", "--every", "1s", "--servers", s.addr, "--", "sh", "-c",
		`echo "$MENAGERIE_PATH $MENAGERIE_JOB $MENAGERIE_SCHEDULED $MENAGERIE_MISSED $MENAGERIE_TOKEN [$MENAGERIE_LAST_ERR]"; exit 7`)
	p.prints("exit code 7]")
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())
	require.Regexp(t, `(?m)^/c nightly 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ 0 [0-9a-f]{16}-00000001 \[\]$`, p.stdout.String())
	require.Regexp(t, `(?m)^menagerie: 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ: sh has ended with exit code 7$`, p.stderr.String())
}

// The signal is passed on, cron ends when CMD has, and another process runs the tick again unless CMD succeeded.
func TestASignalEndsTheCommandAndCron(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT} {
		for code, again := range map[string]bool{"0": false, "3": true} {
			path := "/signals/" + name + code
			log, lines := cronLog(t)
			script := fmt.Sprintf(`exec 2>/dev/null; echo "$MENAGERIE_SCHEDULED" >>"$0"; trap 'echo got it; exit %s' %s; echo ready; while :; do sleep 0.01; done`, code, name)
			args := []string{"cron", path, "--every", "2s", "--servers", s.addr, "--", "sh", "-c", script, log}
			p := start(t, args...)
			p.prints("ready")
			p.signal(sig)
			p.prints("got it")
			require.Equal(t, 128+int(sig), p.wait(), p.stderr.String())
			next := start(t, args...)
			next.prints("ready")
			next.signal(sig)
			require.Equal(t, 128+int(sig), next.wait())
			require.Equal(t, again, lines()[0] == lines()[1], "%v", lines())
		}
	}
}

// A terminal sends the signal of Ctrl-C to CMD alone.
func TestCronEndsWithACommandThatWasInterrupted(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := run(t, "cron", "/c", "--every", "1s", "--servers", s.addr, "--", "sh", "-c", "kill -INT $$; sleep 600")
	p.failed(130, "SIGINT")
}

func TestALostTurnOfCronEndsTheCommandAndItWaitsAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "cron", "/c", "--every", "1s", "--servers", s.addr, "--timeout", "3s", "--grace", "300ms", "--",
		"sh", "-c", `trap '' TERM; echo "$MENAGERIE_LAST_ERR running"; if [ -z "$MENAGERIE_LAST_ERR" ]; then sleep 600; fi`)
	p.prints(" running")
	names := s.Children(cronQueue)
	require.Len(t, names, 1)
	s.Delete(cronQueue + "/" + names[0])
	p.prints("lost its lease, before the function returned running")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	require.Regexp(t, regexp.MustCompile(`(?m)^menagerie: .*: lost /c on .* while sh was running: somebody removed its node$`), p.stderr.String())
}

func TestCronRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for want, args := range map[string][]string{
		"one of --spec and --every":  {"/c", "--", "true"},
		"of --spec and --every":      {"/c", "--spec", "0 3 * * *", "--every", "1s", "--", "true"},
		"want once, skip or all":     {"/c", "--every", "1s", "--missed", "never", "--", "true"},
		"expected exactly 5 fields":  {"/c", "--spec", "0 3 * *", "--", "true"},
		"unknown time zone Mars":     {"/c", "--spec", "CRON_TZ=Mars 0 3 * * *", "--", "true"},
		"a job of the name \"a/b\"":  {"/c", "--name", "a/b", "--every", "1s", "--", "true"},
		"CMD is missing":             {"/c", "--every", "1s"},
		"put -- in front of CMD":     {"/c", "--every", "1s", "true", "--flag"},
		"more than zero, such as 50": {"/c", "--every", "0", "--", "true"},
	} {
		run(t, append([]string{"cron", "--servers", s.addr}, args...)...).failed(exitUsage, want)
	}
	run(t, "cron", "/c", "--every", "1s", "--servers", s.addr, "--", "no-such-program").failed(exitNotFound, "no-such-program")
	run(t, "cron", "/c", "--every", "1s", "--servers", nobody(t), "--connect-timeout", "100ms", "--", "true").failed(exitFailure, "cannot reach")
	holds := start(t, "cron", "/c", "--spec", "0 3 * * *", "--servers", s.addr, "--", "true")
	s.queued(t, cronQueue, 1)
	changed := start(t, "cron", "/c", "--every", "1s", "--servers", s.addr, "--", "echo", "ticks")
	require.Eventually(t, func() bool { return strings.Contains(changed.stderr.String(), "waiting until they have stopped") }, patience, pause)
	require.Contains(t, changed.stderr.String(), "0 3 * * *")
	require.Empty(t, changed.stdout.String())
	holds.signal(syscall.SIGHUP)
	holds.failed(129, "SIGHUP")
	changed.prints("ticks")
	changed.signal(syscall.SIGTERM)
	require.Equal(t, 143, changed.wait())
}

func TestAcceptance200CronRunNowHasTheJobRunAndReportsHowItEnded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "cron", "run-now", "/c", "--servers", s.addr).failed(exitNoSuchPath, `/c has no job "job"`)
	p := start(t, "cron", "/c", "--spec", "@yearly", "--servers", s.addr, "--",
		"sh", "-c", `echo "runs $MENAGERIE_OUT_OF_TURN $MENAGERIE_JOB"; [ -e "$0" ]`, filepath.Join(t.TempDir(), "x"))
	s.queued(t, cronQueue, 1)
	run(t, "cron", "run-now", "/c", "--servers", s.addr).failed(exitJobFailed, "job of /c: run now /c: the run failed: sh has ended with exit code 1")
	require.Equal(t, "runs 1 job\n", p.stdout.String())
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	run(t, "cron", "run-now", "/c", "job", "--wait", "300ms", "--servers", s.addr).failed(exitNotObtained, "gave up waiting for /c")
	require.Empty(t, s.Children("/c/zkcron/job/record"), "the request is withdrawn")
	waits := start(t, "cron", "run-now", "/c", "job", "--servers", s.addr)
	require.Eventually(t, func() bool { return len(s.Children("/c/zkcron/job/record")) == 1 }, patience, pause)
	p = start(t, "cron", "/c", "--spec", "0 0 1 1 *", "--servers", s.addr, "--", "true")
	require.Zero(t, waits.wait())
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	run(t, "cron", "run-now", "--servers", s.addr).failed(exitUsage, "PATH is missing")
	run(t, "cron", "run-now", "/c", "a", "b", "--servers", s.addr).failed(exitUsage, `want PATH and NAME, found "b" too`)
}

func TestAcceptance200CronEndsACommandThatRunsTooLong(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "cron", "/c", "--every", "1s", "--run-timeout", "200ms", "--jitter", "100ms", "--revision", "2", "--servers", s.addr, "--",
		"sh", "-c", `echo "[$MENAGERIE_LAST_ERR]"; sleep 600`)
	p.prints("[timed out after 200ms: sh has run for longer than 200ms (--run-timeout) and was ended]")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	require.Regexp(t, `(?m)^menagerie: 20\S+Z: sh has run for longer than 200ms \(--run-timeout\) and was ended$`, p.stderr.String())
	n, _ := s.Node("/c/zkcron/job")
	require.Contains(t, string(n.Data), `"revision":2`)
}
