//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

const elements = "/q/zkqueue/elements"

func TestQueuePutAndTake(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	put := func(args ...string) {
		run(t, append([]string{"queue", "put", "/q", "--servers", s.addr}, args...)...).succeeded()
	}
	put("second")
	put("third line 1\nline 2")
	put("first", "--priority", "-1")
	put("later", "--delay", "1h")
	require.Equal(t, 4, s.ChildCount(elements))
	for _, want := range []string{"first\n", "second\n", "third line 1\nline 2\n"} {
		p := run(t, "queue", "take", "/q", "--servers", s.addr)
		p.succeeded()
		require.Equal(t, want, p.stdout.String())
	}
	run(t, "queue", "take", "/q", "--try", "--servers", s.addr).failed(exitNotObtained, "/q has no element")
	run(t, "queue", "take", "/q", "--wait", "3s", "--servers", s.addr).failed(exitNotObtained, "gave up waiting for /q", "3s: 1 element")
	run(t, "queue", "receive", "/q", "--wait", "300ms", "--servers", s.addr, "--", "true").failed(exitNotObtained, "gave up waiting for /q")

	cmd := exec.Command(binary, "queue", "put", "/q", "--servers", s.addr)
	cmd.Stdin = strings.NewReader("from a pipe\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	p := run(t, "queue", "take", "/q", "--servers", s.addr)
	require.Equal(t, "from a pipe\n", p.stdout.String())
}

func TestQueueTakeWaits(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	early := start(t, "queue", "take", "/q", "--servers", s.addr) // before there is a queue
	require.Eventually(t, func() bool { return strings.Contains(early.stderr.String(), "nothing was ever put into /q") }, patience, pause)
	run(t, "queue", "put", "/q", "x", "--servers", s.addr).succeeded()
	require.Equal(t, 0, early.wait())
	require.Equal(t, "x\n", early.stdout.String())
	p := start(t, "queue", "take", "/q", "--servers", s.addr)
	require.Eventually(t, func() bool { return s.ChildCount("/q/zkqueue/takers") == 1 }, patience, pause)
	run(t, "queue", "put", "/q", "x", "--servers", s.addr).succeeded()
	p.succeeded()
	require.Equal(t, "x\n", p.stdout.String())
	require.Zero(t, s.ChildCount(elements))
}

func TestAnElementThatCannotBePrintedStays(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "queue", "put", "/q", "x", "--servers", s.addr).succeeded()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	for _, out := range []*os.File{full, closedPipe(t)} {
		for _, flags := range [][]string{{"--wait", "1m"}, {"--try"}} {
			p := startBy(func(c *exec.Cmd) error { c.Stdout = out; return c.Start() }, t, nil, append([]string{"queue", "take", "/q", "--servers", s.addr}, flags...)...)
			p.failed(exitFailure, "cannot be printed, and stays in /q")
			require.Equal(t, 1, s.ChildCount(elements))
			require.Zero(t, s.ChildCount("/q/zkqueue/claims"), "others can have it at once")
		}
	}
	p := run(t, "queue", "take", "/q", "--try", "--servers", s.addr)
	p.succeeded()
	require.Equal(t, "x\n", p.stdout.String())
	require.Zero(t, s.ChildCount(elements))
}

func TestAPathOfAnotherTypeIsRefusedByTakersToo(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "barrier", "/b", "--parties", "1", "--servers", s.addr).succeeded()
	for _, path := range []string{"/simple", "/simple/qn-0000000000"} {
		_, err := s.session(t).Conn().Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	for path, found := range map[string]string{"/b": "zkbarrier", "/simple": "SimpleDistributedQueue of Curator"} {
		for _, args := range [][]string{{"take", path, "--try"}, {"take", path}, {"receive", path, "--", "true"}} {
			run(t, append([]string{"queue", "--servers", s.addr}, args...)...).failed(exitUsage, "the path is that of a "+found)
		}
	}
	_, there := s.Node("/b/queue")
	require.False(t, there)
}

func TestAMistypedPathIsNoQueue(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "queue", "take", "/mistyped", "--try", "--servers", s.addr).failed(exitNotObtained, "/mistyped has no element: nothing was ever put there")
	for _, args := range [][]string{{"take", "/mistyped", "--wait", "3s"}, {"receive", "/mistyped", "--wait", "3s", "--", "true"}} {
		p := run(t, append([]string{"queue", "--servers", s.addr}, args...)...)
		require.Equal(t, exitNotObtained, p.wait())
		require.Contains(t, p.stderr.String(), "nothing was ever put into /mistyped")
		require.Contains(t, p.stderr.String(), "gave up waiting for /mistyped")
	}
	_, there := s.Node("/mistyped")
	require.False(t, there)
}

func TestQueueReceiveAcknowledgesWhatCMDHasDone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "queue", "put", "/q", "a value", "--servers", s.addr).succeeded()
	receive := func(script string) *program {
		return run(t, "queue", "receive", "/q", "--servers", s.addr, "--", "sh", "-c", script)
	}
	require.Equal(t, 7, receive("exit 7").wait())
	require.Equal(t, 143, receive("kill -TERM $$").wait())
	run(t, "queue", "receive", "/q", "--servers", s.addr, "--", "/no/such/program").failed(exitNotFound)
	require.Equal(t, 1, s.ChildCount(elements))
	require.Zero(t, s.ChildCount("/q/zkqueue/claims"))
	p := receive(`cat; echo "/$MENAGERIE_VALUE/$MENAGERIE_ATTEMPT/$MENAGERIE_PATH/$MENAGERIE_TOKEN"`)
	p.succeeded()
	require.Regexp(t, `^a value/a value/3//q/[0-9a-f]{16}-[0-9a-f]{8}\n$`, p.stdout.String())
	require.Zero(t, s.ChildCount(elements))

	big := strings.Repeat("x", 200<<10)
	cmd := exec.Command(binary, "queue", "put", "/q", "--servers", s.addr)
	cmd.Stdin = strings.NewReader(big)
	require.NoError(t, cmd.Run())
	p = receive(`wc -c; echo "${MENAGERIE_VALUE-none}"`)
	p.succeeded()
	require.Equal(t, []string{strconv.Itoa(len(big)), "none"}, strings.Fields(p.stdout.String()))
}

func TestQueueReceiveGivesTheElementBackWhenItDies(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "queue", "put", "/q", "x", "--servers", s.addr).succeeded()
	p := start(t, "queue", "receive", "/q", "--timeout", "1s", "--servers", s.addr, "--", "sh", "-c", "echo working; exec sleep 600")
	p.prints("working")
	p.signal(os.Kill)
	p.wait()
	again := run(t, "queue", "receive", "/q", "--servers", s.addr, "--", "sh", "-c", `echo "$MENAGERIE_ATTEMPT"`)
	again.succeeded()
	require.Equal(t, "2\n", again.stdout.String())
}

func TestQueueWorkersShareTheElements(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for i := range 8 {
		run(t, "queue", "put", "/q", strconv.Itoa(i), "--servers", s.addr).succeeded()
	}
	log := filepath.Join(t.TempDir(), "log")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 2 {
				run(t, "queue", "receive", "/q", "--servers", s.addr, "--", "sh", "-c", `echo "$MENAGERIE_VALUE" >>"$0"`, log).succeeded()
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.ElementsMatch(t, strings.Fields("0 1 2 3 4 5 6 7"), strings.Fields(string(text)))
	require.Zero(t, s.ChildCount(elements))
}

func TestQueueCapacity(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "queue", "put", "/q", "x", "--capacity", "1", "--servers", s.addr).succeeded()
	run(t, "queue", "put", "/q", "y", "--capacity", "1", "--try", "--servers", s.addr).failed(exitNotObtained, "/q is full")
	run(t, "queue", "put", "/q", "y", "--servers", s.addr).failed(exitUsage, "capacity 1")
	run(t, "queue", "put", "/q", "y", "--capacity", "1", "--wait", "3s", "--servers", s.addr).failed(exitNotObtained, "gave up waiting for /q", "3s: 1 of at most 1 element")
	p := start(t, "queue", "put", "/q", "y", "--capacity", "1", "--servers", s.addr)
	require.Eventually(t, func() bool { return s.ChildCount("/q/zkqueue/putters") == 1 }, patience, pause)
	run(t, "queue", "take", "/q", "--capacity", "1", "--servers", s.addr).succeeded()
	p.succeeded()
}

func TestWrongCommandLinesOfQueue(t *testing.T) {
	t.Parallel()
	for args, text := range map[string]string{
		"give /q":                          "unknown command",
		"put":                              "PATH is missing",
		"put q x":                          "does not start with a slash",
		"put /q x y":                       `found "y" too`,
		"put /q x --delay 1s --priority 1": "exclude each other",
		"put /q x --wait 1s --try":         "exclude each other",
		"put /q x --delay 1s --try":        "no meaning",
		"put /q x --capacity 0":            "whole number",
		"take":                             "PATH is missing",
		"take /q --wait 1s --try":          "exclude each other",
		"receive /q":                       "CMD is missing",
		"receive /q sh -c true":            "put -- in front",
		"receive /q --try -- true":         "unknown flag",
	} {
		run(t, append([]string{"queue"}, strings.Fields(args)...)...).failed(exitUsage, text)
	}
}
