//go:build unix

package main

import (
	"encoding/json"
	"syscall"
	"testing"

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
	deadlocked(t, s)
	p := run(t, "deadlocks", "--servers", s.addr)
	require.Equal(t, exitDeadlock, p.wait(), p.stderr.String())
	require.Regexp(t, `(?s)^deadlock:\n  .*holds /d/[ab].* waits for /d/[ab] since .*\n  .*holds /d/.* waits for /d/.*`+
		`\n  to end it, .*menagerie release /d/[ab] --node _c_\S+-lock-\d+\nWAITER.* yes\n.* yes\n$`, p.stdout.String())
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

// deadlocked starts two commands that hold /d/a and /d/b, and each runs a command that waits for the other's lock.
func deadlocked(t *testing.T, s *server) {
	t.Helper()
	for _, c := range [][2]string{{"/d/a", "/d/b"}, {"/d/b", "/d/a"}} {
		inner := binary + " lock " + c[1] + " --servers " + s.addr + " -- true"
		// It takes the second lock when both first ones are held.
		p := start(t, "lock", c[0], "--servers", s.addr, "--", "sh", "-c",
			"until "+binary+" ls /d/a --servers "+s.addr+" | grep -q held && "+binary+" ls /d/b --servers "+s.addr+" | grep -q held; do sleep 0.1; done; "+inner)
		t.Cleanup(func() { // a process that is killed cannot end its command
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			p.wait()
		})
	}
	s.queued(t, "/d/a", 2)
	s.queued(t, "/d/b", 2)
}
