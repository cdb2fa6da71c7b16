//go:build unix

package main

import (
	"path"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// slowly is a CMD that takes so long to end that the reason comes before, on a busy machine, too.
var slowly = []string{"--", "sh", "-c", `exec 2>/dev/null; trap "sleep 3; exit 0" TERM; echo holding; while :; do sleep 0.05; done`}

// learned checks what release has printed last, and the last line of the holder that it has removed. On a busy machine the holder
// may need longer than release waits: then the reason may be gone before it is read.
func learned(t *testing.T, release, holder *program, why string) {
	t.Helper()
	by := " pid " + strconv.Itoa(release.cmd.Process.Pid) + " ("
	if out := release.stdout.String(); strings.HasSuffix(out, ", which was notified of the reason, or has ended\n") {
		holder.failed(exitLost, " was running: removed by ", by, "): "+why+"\n")
	} else {
		require.Contains(t, out, ", which has not confirmed that")
		holder.failed(exitLost, "removed")
	}
}

func TestReleaseLetsTheNextOneInAndTheHolderSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range holding {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			h := start(t, args(c.holds, s, slowly...)...)
			h.prints("holding")
			next := start(t, args(c.waits, s, "--", "true")...)
			require.Eventually(t, func() bool { return len(contenders(t, s.addr, "/p")) == 2 }, patience, pause)
			rows := contenders(t, s.addr, "/p")
			p := run(t, "release", "/p", "--holder", "--yes", "--reason", "it\x1b hangs", "--servers", s.addr)
			p.succeeded()
			pid := strconv.Itoa(h.cmd.Process.Pid)
			require.Regexp(t, `^/p is held by \S+ pid `+pid+` \(sh\) since \d\d:\d\d:\d\dZ \(\d+s\), token `+rows[0].Token+`; removing it lets the next one in: \S+ pid `+
				strconv.Itoa(next.cmd.Process.Pid)+`\.\nThe holder is not stopped: .*\nremoved \S+ pid `+pid+`, `, p.stdout.String())
			learned(t, p, h, "it hangs")
			next.succeeded()
		})
	}
}

func TestReleaseRemovesNothingThatItMayNot(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	release := func(more ...string) *program {
		return run(t, append([]string{"release", "--servers", s.addr}, more...)...)
	}
	release("/a", "--holder", "--yes").failed(exitNoSuchPath, "/a does not exist")
	run(t, "lock", "/a", "--servers", s.addr, "--", "true").succeeded()
	release("/a", "--holder", "--yes").failed(exitNoSuchPath, "holds or waits for /a")
	h := holder(t, s, "/a")
	node := s.Children("/a")[0]
	p := release("/a", "--holder")
	p.failed(exitRefused, "refused", "--yes", "nothing was removed")
	require.Contains(t, p.stdout.String(), "/a is held by ")
	require.Contains(t, p.stdout.String(), "no process waits")
	release("/a", "--node", strings.Replace(node, "lock", "kcol", 1), "--yes").failed(exitRefused, "it is gone")
	release("/a", "--node", "n\x1b[31m"+strings.Repeat("x", 3000), "--yes").failed(exitRefused, `no node "n\x1b[31mxx`, `xx"... holds /a`)
	release("/a", "--yes").failed(exitUsage, "--node NAME and --holder")
	release("/a", "--yes", "--holder", "--node", node).failed(exitUsage, "--node NAME and --holder")
	release("/", "--yes", "--holder").failed(exitUsage, "root")
	run(t, "barrier", "/b", "--parties", "1", "--servers", s.addr).succeeded()
	release("/b", "--holder", "--yes").failed(exitRefused, "/b is no lock", "barrier")
	run(t, "hold", "/d", "--owner", "me", "--servers", s.addr).succeeded()
	release("/d", "--holder", "--yes").failed(exitRefused, "unhold /d --break")
	require.Equal(t, []string{node}, s.Children("/a"))

	release("/a", "--node", "/a/"+node, "--yes").succeeded()
	h.failed(exitLost, "removed")
}

func TestReleaseNamesSeveralHolders(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var readers []*program
	for range 2 {
		p := start(t, "rlock", "/a", "--servers", s.addr, "--", "sh", "-c", "echo holding; exec sleep 600")
		p.prints("holding")
		readers = append(readers, p)
	}
	p := run(t, "release", "/a", "--holder", "--yes", "--servers", s.addr)
	p.failed(exitRefused, "2 holders", s.Children("/a")[0], s.Children("/a")[1], "pid "+strconv.Itoa(readers[0].cmd.Process.Pid), "pid "+strconv.Itoa(readers[1].cmd.Process.Pid))
	require.Equal(t, 2, s.ChildCount("/a"))
	first := path.Base(contenders(t, s.addr, "/a")[0].Node)
	p = run(t, "release", "/a", "--node", first, "--yes", "--servers", s.addr)
	p.succeeded()
	require.Contains(t, p.stdout.String(), "; 1 other holder stays.\n")
	readers[0].failed(exitLost, "removed")
	require.Len(t, contenders(t, s.addr, "/a"), 1)
}

func TestAReleasedWaiterQueuesAgainAtTheTail(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a")
	for n := range 2 {
		start(t, "lock", "/a", "--servers", s.addr, "--", "true")
		s.queued(t, "/a", 2+n)
	}
	before := contenders(t, s.addr, "/a")
	p := run(t, "release", "/a", "--node", path.Base(before[1].Node), "--yes", "--servers", s.addr)
	p.succeeded()
	require.Contains(t, p.stdout.String(), " waits for /a since ")
	require.Contains(t, p.stdout.String(), ", 1st in line; removing it takes its place")
	require.Contains(t, p.stdout.String(), "from the queue\n")
	s.queued(t, "/a", 3)
	after := contenders(t, s.addr, "/a")
	require.Equal(t, before[2].Node, after[1].Node)
	require.Equal(t, before[1].Owner, after[2].Owner)
}

func TestReleaseDoesNotWaitForAHolderThatIsStopped(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := holder(t, s, "/a", "--timeout", "60s")
	h.signal(syscall.SIGSTOP)
	p := run(t, "release", "/a", "--holder", "--yes", "--servers", s.addr)
	p.succeeded()
	require.Contains(t, p.stdout.String(), "which has not confirmed that")
	require.Empty(t, s.Children("/a"), "nor is the reason left")
	h.signal(syscall.SIGCONT)
	require.Equal(t, exitLost, h.wait())
}

func TestReleaseRemovesAnotherLibrarysHolder(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.session(t).Conn()
	_, err := c.Create("/k", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	node, err := c.Create("/k/0123456789abcdef0123456789abcdef__lock__", []byte("kazoo-7"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	p := run(t, "release", "/k", "--node", path.Base(node), "--yes", "--reason", "x", "--servers", s.addr)
	p.succeeded()
	require.Contains(t, p.stdout.String(), "/k is held by kazoo-7 since")
	require.Contains(t, p.stdout.String(), "uses another library")
	require.Empty(t, s.Children("/k"))
}

func TestReleaseGivesUpWhenTheServersFallSilent(t *testing.T) {
	t.Parallel()
	run(t, "release", "/a", "--holder", "--yes", "--connect-timeout", "300ms", "--servers", nobody(t)).failed(exitFailure, "within 300ms")
}
