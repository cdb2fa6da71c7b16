//go:build unix

package recipes_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// contenderEnv makes the test's program a contender: see contend. It holds the connect string.
const contenderEnv = "MENAGERIE_TEST_CONTENDER"

func TestMain(m *testing.M) {
	if servers := os.Getenv(contenderEnv); servers != "" {
		if err := contend(servers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// contend is the life of another process: it locks, says so when it believes that it holds, and unlocks when it
// is told to.
func contend(servers string) error {
	ctx := context.Background()
	s, err := zksync.Connect(ctx, servers, zksync.WithTimeout(8*time.Second))
	if err != nil {
		return err
	}
	m := zksync.NewMutex(s, lockPath)
	for {
		l, err := m.LockContext(ctx)
		if err != nil {
			return err
		}
		if !l.Valid() {
			_ = l.Unlock()
			continue
		}
		fmt.Println("holds")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		if err := l.Unlock(); err != nil {
			return err
		}
		return s.Close()
	}
}

// onSockets runs f in real time: over TCP other processes can take part, on the in-process server too.
func onSockets(t *testing.T, f func(t *testing.T, v *env)) {
	t.Helper()
	t.Parallel()
	servers := os.Getenv(ensemble.ServersEnv)
	if servers == "" {
		servers = zktest.Run(t).Addr()
	}
	f(t, realEnv(t, servers))
}

// process is another process that contends.
type process struct {
	v     *env
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  chan string
}

func (v *env) process() *process {
	v.t.Helper()
	self, err := os.Executable()
	require.NoError(v.t, err)
	p := &process{v: v, cmd: exec.Command(self), said: make(chan string, 10)}
	p.cmd.Env = append(os.Environ(), contenderEnv+"="+v.connectString())
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(v.t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(v.t, err)
	require.NoError(v.t, p.cmd.Start())
	go func() {
		defer close(p.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()
	v.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // also one that was stopped
		_ = p.cmd.Wait()
	})
	return p
}

// stop returns when the process does nothing any more.
func (p *process) stop() {
	p.v.t.Helper()
	require.NoError(p.v.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		require.NoError(p.v.t, err)
		break
	}
	require.True(p.v.t, status.Stopped())
}

func (p *process) resume() {
	p.v.t.Helper()
	require.NoError(p.v.t, p.cmd.Process.Signal(syscall.SIGCONT))
}

// silent checks that the process has not claimed to hold.
func (p *process) silent() {
	p.v.t.Helper()
	select {
	case line := <-p.said:
		require.Fail(p.v.t, "it believes that it "+line)
	default:
	}
}

// holds waits until the process claims to hold.
func (p *process) holds() {
	p.v.t.Helper()
	select {
	case line := <-p.said:
		require.Equal(p.v.t, "holds", line)
	case <-time.After(p.v.patience()):
		require.Fail(p.v.t, "it does not get the lock")
	}
}

// leaves has the process unlock and end.
func (p *process) leaves() {
	p.v.t.Helper()
	require.NoError(p.v.t, p.stdin.Close())
	for range p.said { // until it has closed its output
	}
	require.NoError(p.v.t, p.cmd.Wait())
}

func TestAcceptance022TwoProcessesOfOneHostShareNoIdentity(t *testing.T) {
	onSockets(t, func(t *testing.T, v *env) {
		first := v.process()
		first.holds()
		second := v.process()
		v.queued(lockPath, 2)
		list, err := zksync.Contenders(context.Background(), v.session(), lockPath)
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, first.cmd.Process.Pid, list[0].Owner.PID)
		require.Equal(t, second.cmd.Process.Pid, list[1].Owner.PID)
		require.Equal(t, list[0].Owner.Host, list[1].Owner.Host)
		require.NotEqual(t, list[0].Session, list[1].Session)
		second.silent()
		require.NoError(t, first.cmd.Process.Kill())
		second.holds()
		require.Equal(t, []string{list[1].Node[len(lockPath)+1:]}, v.children(lockPath), "by its own node, not the dead one's")
		second.leaves()
		v.queued(lockPath, 0)
	})
}

// The process is stopped beyond the end of its session, while its turn comes and goes.
func TestAcceptance122AWaiterWhoseProcessWasStoppedNeitherBelievesNorBlocks(t *testing.T) {
	onSockets(t, func(t *testing.T, v *env) {
		holder := v.lock(v.mutexes(1)[0])
		stopped := v.process()
		v.queued(lockPath, 2)
		third, _ := v.waiting(context.Background(), v.mutexes(1)[0])
		stopped.stop()
		require.NoError(t, holder.Unlock())
		l := v.granted(third) // when the session of the stopped one is over
		stopped.resume()
		v.queued(lockPath, 2) // it queues anew
		stopped.silent()
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		stopped.holds()
		stopped.leaves()
		v.queued(lockPath, 0)
	})
}
