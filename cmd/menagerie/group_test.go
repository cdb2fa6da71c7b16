//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const groupMembers = "/g/zkgroup/members"

func TestAMemberIsInTheGroupWhileItsCommandRuns(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	join := func(id, script string) *program {
		return start(t, "group", "join", "/g", "--id", id, "--data", id+":80", "--servers", s.addr, "--", "sh", "-c", script)
	}
	stays := join("web/1", `trap 'echo told; exit 5' TERM; echo "in $MENAGERIE_PATH"; while :; do sleep 0.01; done`)
	stays.prints("in /g")
	s.queued(t, groupMembers, 1)
	n, _ := s.Node(groupMembers + "/web%2F1")
	require.Equal(t, "web/1:80", string(n.Data))
	listed := run(t, "ls", "/g", "--servers", s.addr)
	listed.succeeded()
	require.Contains(t, listed.stdout.String(), "web/1")

	join("web2", "exit 0").succeeded()
	s.queued(t, groupMembers, 1)
	require.Equal(t, 7, join("web3", "exit 7").wait())
	s.queued(t, groupMembers, 1)

	stays.signal(syscall.SIGTERM)
	require.Equal(t, 5, stays.wait(), stays.stderr.String())
	require.Contains(t, stays.stdout.String(), "told")
	require.Zero(t, s.ChildCount(groupMembers))
}

func TestAMemberIsInTheGroupAgainWhenItsNodeWasRemoved(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "group", "join", "/g", "--id", "web1", "--servers", s.addr, "--", "sh", "-c", "echo in; exec sleep 600")
	p.prints("in")
	s.queued(t, groupMembers, 1)
	s.Delete(groupMembers + "/web1")
	s.queued(t, groupMembers, 1)
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
}

// The worker notes each change of its file; the second one dies with no time to give anything up.
func TestTheItemsAreDividedAmongTheMembersInTheirFiles(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := t.TempDir()
	all := strings.Fields("a b c d e f g h")
	list := filepath.Join(dir, "items")
	require.NoError(t, os.WriteFile(list, []byte(strings.Join(all, "\r\n")+"\n\n"), 0o644))
	files := map[string]string{"one": filepath.Join(dir, "one"), "two": filepath.Join(dir, "two")}
	worker := func(id string) *program {
		return start(t, "group", "join", "/g", "--id", id, "--items", list, "--assign", files[id], "--grace", "50ms", "--timeout", "3s", "--servers", s.addr,
			"--", "sh", "-c", `trap 'echo changed' HUP; trap 'exit 3' TERM; echo "begins with" $(cat "$0"); while :; do sleep 0.01; done`, files[id])
	}
	of := func(id string) []string {
		text, err := os.ReadFile(files[id])
		if os.IsNotExist(err) {
			return nil
		}
		require.NoError(t, err)
		require.True(t, len(text) == 0 || text[len(text)-1] == '\n')
		items := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
		require.True(t, slices.IsSorted(items), "%v", items)
		return items
	}
	one := worker("one")
	has := func(id string, n int) {
		t.Helper()
		require.Eventually(t, func() bool { return len(of(id)) == n }, patience, pause, "%s has %v", id, of(id))
	}
	one.prints("begins with a b c d e f g h\n")
	require.NotContains(t, one.stdout.String(), "changed")

	two := worker("two")
	require.Eventually(t, func() bool {
		first, second := of("one"), of("two")
		return len(second) > 0 && slices.Equal(slices.Sorted(slices.Values(append(first, second...))), all)
	}, patience, pause)
	one.prints("changed")
	moved := of("two")
	two.prints("begins with " + strings.Join(moved, " ") + "\n")
	require.NotContains(t, two.stdout.String(), "changed")
	require.NotEmpty(t, of("one"))

	two.signal(os.Kill)
	two.wait()
	has("one", len(all))
	require.Equal(t, moved, of("two"), "nobody is left to write it")

	one.signal(syscall.SIGTERM)
	require.Equal(t, 3, one.wait(), one.stderr.String())
	require.Empty(t, of("one"))
	require.Zero(t, s.ChildCount(groupMembers))
	for _, item := range all {
		require.LessOrEqual(t, s.ChildCount("/g/zkgroup/items/"+item+"/queue"), 0, "nobody has %s", item)
	}
}

// The command does not trap SIGHUP before its file has changed, and hears of that when it does.
func TestAChangeOfTheItemsKillsNeitherTheCommandNorWhatItHasStarted(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := t.TempDir()
	list, file, other, trap := filepath.Join(dir, "items"), filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "trap")
	require.NoError(t, os.WriteFile(list, []byte("a\nb\nc\nd\ne\nf\n"), 0o644))
	join := func(id, file string, cmd ...string) *program {
		return start(t, append([]string{"group", "join", "/g", "--id", id, "--items", list, "--assign", file, "--grace", "50ms", "--servers", s.addr, "--"}, cmd...)...)
	}
	one := join("one", file, "sh", "-c", `sleep 600 & echo "grandchild $!."; while [ ! -e "$0" ]; do sleep 0.01; done
		trap 'echo "changed to" $(wc -l <"$1")' HUP; trap 'exit 3' TERM; echo traps; while :; do sleep 0.01; done`, trap, file)
	one.prints(".")
	join("two", other, "sh", "-c", "echo begins; exec sleep 600").prints("begins") // which does not trap SIGHUP at all
	require.NoError(t, os.WriteFile(trap, nil, 0o600))
	one.prints("changed to")
	_, now, _ := strings.Cut(one.stdout.String(), "changed to ")
	require.Less(t, now, "6")
	join("three", filepath.Join(dir, "three"), "true").succeeded()
	require.True(t, alive(grandchild(t, one)))
	one.signal(syscall.SIGTERM)
	require.Equal(t, 3, one.wait(), one.stderr.String())
}

// Another member has its item, and needs a while to give it up.
func TestAMemberThatWaitsForItsItemsCanBeInterrupted(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := t.TempDir()
	list := filepath.Join(dir, "items")
	require.NoError(t, os.WriteFile(list, []byte("a\n"), 0o644))
	join := func(id string) *program {
		return start(t, "group", "join", "/g", "--id", id, "--items", list, "--assign", filepath.Join(dir, id), "--grace", "10m", "--timeout", "1m", "--servers", s.addr, "--", "sh", "-c", "trap : HUP; echo begins; while :; do sleep 0.01; done")
	}
	first, owner := "two", "one" // by their hashes
	a := join(first)
	a.prints("begins")
	b := join(owner)
	s.queued(t, "/g/zkgroup/items/a", 2)
	b.signal(syscall.SIGTERM)
	b.failed(143, "/g", "interrupted")
	require.Empty(t, b.stdout.String())
	s.queued(t, groupMembers, 1)
	a.signal(syscall.SIGTERM)
	a.wait()
}

func TestAnIDThatALivingMemberHasIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	args := []string{"group", "join", "/g", "--id", "web1", "--timeout", "3s", "--servers", s.addr, "--", "sh", "-c", "echo in; exec sleep 600"}
	start(t, args...).prints("in")
	second := run(t, args...)
	second.failed(exitUsage, "/g", `"web1"`)
	require.Empty(t, second.stdout.String())
	s.queued(t, groupMembers, 1)
}

// Neither the items nor the member keep who has nothing to do any more.
func TestAMemberWhoseServersAreGoneEndsWithItsCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := t.TempDir()
	list, file := filepath.Join(dir, "items"), filepath.Join(dir, "mine")
	require.NoError(t, os.WriteFile(list, []byte("a\nb\n"), 0o644))
	p := start(t, "group", "join", "/g", "--items", list, "--assign", file, "--timeout", "3s", "--servers", s.addr,
		"--", "sh", "-c", `while [ "$(wc -l <"$0")" -lt 2 ]; do sleep 0.01; done; echo both; while [ -s "$0" ]; do sleep 0.01; done; exit 4`, file)
	p.prints("both")
	s.Close()
	require.Equal(t, 4, p.wait(), p.stderr.String()) // the leases ended, so the file was emptied
}

// A minute is the session timeout: the leases of the items are still valid.
func TestAMemberWhoseServersAreSilentEndsWithItsCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := t.TempDir()
	list, file := filepath.Join(dir, "items"), filepath.Join(dir, "mine")
	require.NoError(t, os.WriteFile(list, []byte("a\nb\n"), 0o644))
	p := start(t, "group", "join", "/g", "--items", list, "--assign", file, "--timeout", "1m", "--servers", s.addr,
		"--", "sh", "-c", `trap : HUP; trap 'exit 4' TERM; while [ "$(wc -l <"$0")" -lt 2 ]; do sleep 0.01; done; echo both; while :; do sleep 0.01; done`, file)
	p.prints("both")
	defer s.Freeze()()
	began := time.Now()
	p.signal(syscall.SIGTERM)
	require.Equal(t, 4, p.wait(), p.stderr.String())
	require.Less(t, time.Since(began), 30*time.Second)
}

func TestWrongCommandLinesOfGroup(t *testing.T) {
	t.Parallel()
	for args, text := range map[string]string{
		"part /g":                           "unknown command",
		"jion /g --help":                    `unknown command "jion", did you mean join?`,
		"join":                              "PATH is missing",
		"join g -- true":                    "does not start with a slash",
		"join /g":                           "CMD is missing",
		"join /g sh -c true":                "put -- in front",
		"join /g --id= -- true":             "--id is empty",
		"join /g --items /dev/null -- true": "--items and --assign belong together",
		"join /g --assign /tmp/x -- true":   "--items and --assign belong together",
		"join /g --grace=-1s -- true":       "--grace",
	} {
		run(t, append([]string{"group", "--servers", nobody(t), "--connect-timeout", "100ms"}, strings.Fields(args)...)...).failed(exitUsage, text)
	}
	s := startServer(t)
	for _, c := range []struct {
		code int
		text string
		args []string
	}{
		{exitUsage, "ID of a member is too long", []string{"--id", strings.Repeat("x", 201), "--", "true"}},
		{exitFailure, "no-such-file", []string{"--items", "no-such-file", "--assign", "x", "--", "true"}},
		{exitFailure, "no-such-dir", []string{"--items", os.DevNull, "--assign", "no-such-dir/x", "--", "true"}},
		{exitNotFound, "no-such-program", []string{"--", "no-such-program"}},
	} {
		run(t, append([]string{"group", "join", "/g", "--servers", s.addr}, c.args...)...).failed(c.code, c.text)
	}
}
