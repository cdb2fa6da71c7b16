//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

const batchWorkers, batchItems = 20, 30

// batchItem is CMD of the batch. It works on an item under one of three permits, and notes that under a lock, once. At the first
// attempts of some items it does what users and machines do. $0 is a directory.
const batchItem = `
case $MENAGERIE_VALUE/$MENAGERIE_ATTEMPT in
kill/1) kill -9 $PPID; exec sleep 600;;                 # menagerie dies, and this process with it
worker/1) kill -9 $(cat "$0/pid.$NAME");;               # the worker dies, and menagerie goes on
hang/1) exec timeout 1s sleep 600;;
fail/1) exit 3;;
stop/1) (sleep 8; kill -CONT $PPID $$) & kill -STOP $PPID $$;; # neither says anything for longer than the session timeout
esac
menagerie sem /batch/api --permits 3 --timeout 5s -- sh -eu -c '
	: >"$0/inside/$$"
	n=0; for f in "$0"/inside/*; do if kill -0 "${f##*/}" 2>/dev/null; then n=$((n+1)); fi; done
	if [ $n -gt 3 ]; then echo "$n" >>"$0/crowded"; fi
	sleep 0.05
	rm "$0/inside/$$"' "$0"
note='
	echo "$MENAGERIE_TOKEN" >>"$0/tokens"
	if ! grep -qx "$1" "$0/done"; then sleep 0.02; echo "$1" >>"$0/done"; fi
	echo "$MENAGERIE_TOKEN" >>"$0/tokens"'
case $MENAGERIE_VALUE in
log*) menagerie lock /batch/ledger -vv --timeout 5s -- sh -eu -c "$note" "$0" "$MENAGERIE_VALUE" 2>&1 | : ;; # whose reader has ended
*) menagerie lock /batch/ledger --timeout 5s -- sh -eu -c "$note" "$0" "$MENAGERIE_VALUE";;
esac
echo "$MENAGERIE_VALUE" >>"$0/runs"
`

func TestABatchOfShellWorkersThroughFaults(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	batch(t, s.addr, func() { s.Stop(); s.Restart() })
}

func TestABatchOfShellWorkersWhileARealServerRestarts(t *testing.T) {
	t.Parallel()
	if os.Getenv("MENAGERIE_BATCH") == "" {
		t.Skip(`it takes a minute: "make batch" runs it`)
	}
	e := ensemble.ForTest(t, 3)
	batch(t, e.Connect(), func() {
		require.NoError(t, e.Servers()[0].Kill())
		require.NoError(t, e.Servers()[0].Start(t.Context()))
	})
}

// batch runs examples/shellbatch.
func batch(t *testing.T, servers string, restart func()) {
	t.Helper()
	script, err := filepath.Abs("../../examples/shellbatch/worker.sh")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "inside"), 0o755))
	items := []string{"kill", "worker", "hang", "fail", "stop", "log1", "log2", "log3"}
	for i := len(items); i < batchItems; i++ {
		items = append(items, fmt.Sprint("item", i))
	}
	list := filepath.Join(dir, "items")
	require.NoError(t, os.WriteFile(list, []byte(strings.Join(items, "\n")+"\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "done"), nil, 0o644))
	env := []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), serversEnv + "=" + servers,
		"SCRIPT=" + script, "ITEMS=" + list, "ITEM=" + batchItem, "DIR=" + dir, fmt.Sprint("WORKERS=", batchWorkers)}
	const worker = `export NAME=$0; exec "$SCRIPT" /batch "$NAME" "$WORKERS" "$ITEMS" sh -eu -c "$ITEM" "$DIR"`
	shell := func(script string, args ...string) *program {
		p := startBy(func(c *exec.Cmd) error {
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", script}, args...)
			c.Env = append(c.Env, env...)
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			return c.Start()
		}, t, nil)
		t.Cleanup(func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
		return p
	}

	// One dies while it waits for the others, with all that it has started, and is started again with them.
	first := shell(worker, "w1")
	require.Eventually(t, func() bool {
		p := run(t, "ls", "/batch/begin-latch", "--servers", servers)
		return strings.Contains(p.stdout.String(), "1 of 20")
	}, patience, 10*pause)
	require.NoError(t, syscall.Kill(-first.cmd.Process.Pid, syscall.SIGKILL))
	first.wait()

	all := shell(`seq $WORKERS | xargs -P $WORKERS -I{} sh -c 'until sh -c "echo \$\$ >$DIR/pid.w{}; ` + strings.NewReplacer(`"`, `\"`, `$`, `\$`).Replace(worker) + `" w{}; do sleep 0.1; done'`)
	lines := func(name string) []string {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return strings.Fields(string(text))
	}
	require.Eventually(t, func() bool { return len(lines("done")) >= batchItems/3 }, patience, pause, "%s %s", lazy{&all.stdout}, lazy{&all.stderr})
	restart()
	require.Equal(t, 0, all.wait(), all.stderr.String())

	require.ElementsMatch(t, items, lines("done"), "each item is noted once")
	require.Subset(t, lines("runs"), items)
	require.True(t, slices.IsSorted(lines("tokens")), "nobody writes under the lock after the next holder")
	require.Empty(t, lines("crowded"), "more than three had a permit")
	for i := range batchWorkers {
		require.Equal(t, 1, strings.Count(all.stdout.String(), fmt.Sprintf("w%d: done\n", i+1)), all.stdout.String())
	}
	codes := map[string]int{}
	for _, m := range regexp.MustCompile(`exit code (\d+)`).FindAllStringSubmatch(all.stdout.String(), -1) {
		codes[m[1]]++
	}
	for _, code := range []string{"3", "76", "124", "137"} {
		require.NotZero(t, codes[code], "%v", codes)
	}
	t.Log(codes)
}

// An editor may leave the last line without a newline, and blanks belong to an item. Code 75 may also mean that no server could be
// reached, or be that of CMD.
func TestAShellWorkerDoesEveryLineOfItsFile(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	script, err := filepath.Abs("../../examples/shellbatch/worker.sh")
	require.NoError(t, err)
	list, done := filepath.Join(t.TempDir(), "items"), filepath.Join(t.TempDir(), "done")
	require.NoError(t, os.WriteFile(list, []byte(" a\tb \n--c\nlast"), 0o644))
	p := startBy(func(c *exec.Cmd) error {
		c.Path, c.Args = script, []string{script, "/batch", "w1", "1", list, "sh", "-c", `[ "$MENAGERIE_ATTEMPT" -gt 1 ] || exit 75; echo "$MENAGERIE_VALUE" >>"$0"`, done}
		c.Env = append(c.Env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), serversEnv+"="+s.addr)
		return c.Start()
	}, t, nil)
	require.Equal(t, 0, p.wait(), lazy{&p.stderr})
	text, err := os.ReadFile(done)
	require.NoError(t, err)
	require.Equal(t, " a\tb \n--c\nlast\n", string(text))
}
