//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

func TestALockInsideTheCommandSaysThatItIsTheSameOwner(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	menagerie := func(words ...string) string {
		return strings.Join(append([]string{`"$0"`}, append(words, "--servers", s.addr)...), " ")
	}
	inner := menagerie("lock", "/b") + ` -- sh -c '"$0" ls /a --json --servers ` + s.addr + `; "$0" ls /b --json --servers ` + s.addr + `; echo "$MENAGERIE_TOKEN"' "$0"`
	p := run(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", `echo "$MENAGERIE_TOKEN"; `+inner, binary)
	p.succeeded()
	lines := strings.Split(strings.TrimSpace(p.stdout.String()), "\n")
	outer, text := lines[0], strings.Join(lines[1:], "\n")
	require.Equal(t, 1, strings.Count(text, `"under"`), "the outer one held nothing when it queued")
	require.Contains(t, text, `"under": "`+outer+`"`)
	require.NotContains(t, text, `"under": "`+lines[len(lines)-1]+`"`)

	q := start(t, "lock", "/c", "--servers", s.addr, "--", "sh", "-c", "export MENAGERIE_TOKEN=other; exec "+menagerie("lock", "/d")+" -- sh -c 'echo held; exec sleep 60'", binary)
	q.prints("held")
	require.Empty(t, contenders(t, s.addr, "/d")[0].Under)
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
