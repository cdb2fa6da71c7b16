//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
)

func TestDeadlocksShowsWhoWaitsForWhom(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	none := run(t, "deadlocks", "--servers", s.addr)
	none.succeeded()
	require.Equal(t, "no deadlock, and nothing waits\n", none.stdout.String())

	holder(t, s, "/d/a")
	waiter := start(t, "lock", "/d/a", "--servers", s.addr, "--", "true")
	s.queued(t, "/d/a", 2)
	p := run(t, "deadlocks", "/d", "--servers", s.addr)
	p.succeeded()
	require.Regexp(t, `^no deadlock\nWAITER +WAITS FOR +BEHIND +SINCE +TOKEN +STUCK\ntrue@\S+:\d+ +/d/a +sh@\S+:\d+ +\S+Z \(\d+s\) +[0-9a-f-]{25}\n$`, p.stdout.String())
	require.NoError(t, waiter.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 143, waiter.wait())
}

func TestDeadlocksFindsCommandsThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	deadlocked(t, s, "/d/a", "/d/b")
	p := run(t, "deadlocks", "--servers", s.addr)
	require.Equal(t, exitDeadlock, p.wait(), p.stderr.String())
	require.Regexp(t, `(?s)^deadlock:\n  .*holds /d/[ab].* waits for /d/[ab] since .*\n  .*holds /d/.* waits for /d/.*`+
		`\n  to end it, .*menagerie release /d/[ab] --node _c_\S+-lock-\d+ --servers \S+\nWAITER.* yes\n.* yes\n$`, p.stdout.String())
	require.Empty(t, p.stderr.String())

	j := run(t, "deadlocks", "--json", "--servers", s.addr)
	require.Equal(t, exitDeadlock, j.wait(), j.stderr.String())
	var got struct {
		Cycles []survey.Cycle
		Waits  []struct {
			Path  string
			Stuck bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(j.stdout.String()), &got))
	require.Len(t, got.Cycles, 1)
	require.True(t, got.Cycles[0].Certain)
	require.Len(t, got.Waits, 2)
	for _, w := range got.Waits {
		require.True(t, w.Stuck)
	}
	other := run(t, "deadlocks", "/elsewhere", "--servers", s.addr)
	other.succeeded()
}

// The line that is shown to be copied must do what it shows, whatever another program has called a path.
func TestDeadlocksPrintsACommandThatCanBeCopied(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	deadlocked(t, s, "/d/it's; $(touch a)", "/d/b; c")
	p := run(t, "deadlocks", "--servers", s.addr)
	require.Equal(t, exitDeadlock, p.wait(), p.stderr.String())
	require.Regexp(t, `(?m)^  to end it, .*: menagerie release '/d/(it'\\''s; \$\(touch a\)|b; c)' --node _c_\S+-lock-\d+ --servers `+s.addr+"$", p.stdout.String())
	require.Equal(t, 7, strings.Count(p.stdout.String(), "\n"), p.stdout.String())
}

func TestDeadlocksSaysWhatItHasNotRead(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.Create("/shut", nil, 0, 0)
	s.SetACL("/shut", zk.WorldACL(zk.PermAdmin)...)
	p := run(t, "deadlocks", "--servers", s.addr)
	p.succeeded()
	require.Equal(t, "no deadlock, as far as it was read\nnot read, because they are not readable with these credentials (see --auth): /shut\n", p.stdout.String())
}

func TestDeadlocksBelowNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := run(t, "deadlocks", "/nosuch", "--servers", s.addr)
	p.succeeded()
	require.Equal(t, "/nosuch does not exist\nno deadlock, and nothing waits\n", p.stdout.String())
	j := run(t, "deadlocks", "/nosuch", "--json", "--servers", s.addr)
	j.succeeded()
	require.JSONEq(t, `{"cycles":[],"waits":[],"missing":true}`, j.stdout.String())
}

// deadlocked starts two commands that hold a and b, and each runs a command that waits for the other's lock.
func deadlocked(t *testing.T, s *server, a, b string) {
	t.Helper()
	// It takes the second lock when both first ones are held.
	const inner = `until "$0" ls "$1" --servers "$3" | grep -q held && "$0" ls "$2" --servers "$3" | grep -q held; do sleep 0.1; done; ` +
		`"$0" lock "$2" --servers "$3" -- true`
	for _, c := range [][2]string{{a, b}, {b, a}} {
		p := start(t, "lock", c[0], "--servers", s.addr, "--", "sh", "-c", inner, binary, c[0], c[1], s.addr)
		t.Cleanup(func() { // a process that is killed cannot end its command
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			p.wait()
		})
	}
	s.queued(t, a, 2)
	s.queued(t, b, 2)
}
