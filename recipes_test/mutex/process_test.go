//go:build unix

package mutex_test

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

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
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
	m := zksync.NewMutex(s, proving.LockPath)
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
func onSockets(t *testing.T, f func(t *testing.T, v *proving.Env)) {
	t.Helper()
	t.Parallel()
	servers := os.Getenv(ensemble.ServersEnv)
	if servers == "" {
		servers = zktest.Run(t).Addr()
	}
	f(t, proving.RealEnv(t, servers))
}

// process is another process that contends.
type process struct {
	v     *proving.Env
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  chan string
}

func startProcess(v *proving.Env) *process {
	v.T.Helper()
	self, err := os.Executable()
	require.NoError(v.T, err)
	p := &process{v: v, cmd: exec.Command(self), said: make(chan string, 10)}
	p.cmd.Env = append(os.Environ(), contenderEnv+"="+v.ConnectString())
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(v.T, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(v.T, err)
	require.NoError(v.T, p.cmd.Start())
	go func() {
		defer close(p.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()
	v.T.Cleanup(func() {
		_ = p.cmd.Process.Kill() // also one that was stopped
		_ = p.cmd.Wait()
	})
	return p
}

// stop returns when the process does nothing any more.
func (p *process) stop() {
	p.v.T.Helper()
	require.NoError(p.v.T, p.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		require.NoError(p.v.T, err)
		break
	}
	require.True(p.v.T, status.Stopped())
}

func (p *process) resume() {
	p.v.T.Helper()
	require.NoError(p.v.T, p.cmd.Process.Signal(syscall.SIGCONT))
}

// silent checks that the process has not claimed to hold.
func (p *process) silent() {
	p.v.T.Helper()
	select {
	case line := <-p.said:
		require.Fail(p.v.T, "it believes that it "+line)
	default:
	}
}

// holds waits until the process claims to hold.
func (p *process) holds() {
	p.v.T.Helper()
	select {
	case line := <-p.said:
		require.Equal(p.v.T, "holds", line)
	case <-time.After(p.v.Patience()):
		require.Fail(p.v.T, "it does not get the lock")
	}
}

// leaves has the process unlock and end.
func (p *process) leaves() {
	p.v.T.Helper()
	require.NoError(p.v.T, p.stdin.Close())
	for range p.said { // until it has closed its output
	}
	require.NoError(p.v.T, p.cmd.Wait())
}

func TestAcceptance022TwoProcessesOfOneHostShareNoIdentity(t *testing.T) {
	onSockets(t, func(t *testing.T, v *proving.Env) {
		first := startProcess(v)
		first.holds()
		second := startProcess(v)
		v.Queued(proving.LockPath, 2)
		v.Flush()
		list, err := zksync.Contenders(context.Background(), v.Session(), proving.LockPath)
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, first.cmd.Process.Pid, list[0].Owner.PID)
		require.Equal(t, second.cmd.Process.Pid, list[1].Owner.PID)
		require.Equal(t, list[0].Owner.Host, list[1].Owner.Host)
		require.NotEqual(t, list[0].Session, list[1].Session)
		second.silent()
		require.NoError(t, first.cmd.Process.Kill())
		second.holds()
		require.Equal(t, []string{list[1].Node[len(proving.LockPath)+1:]}, v.Children(proving.LockPath), "by its own node, not the dead one's")
		second.leaves()
		v.Queued(proving.LockPath, 0)
	})
}

// The process is stopped beyond the end of its session, while its turn comes and goes.
func TestAcceptance122AWaiterWhoseProcessWasStoppedNeitherBelievesNorBlocks(t *testing.T) {
	onSockets(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(v.Mutexes(1)[0])
		stopped := startProcess(v)
		v.Queued(proving.LockPath, 2)
		third, _ := waiting(v, context.Background(), v.Mutexes(1)[0])
		stopped.stop()
		require.NoError(t, holder.Unlock())
		l := v.Granted(third) // when the session of the stopped one is over
		stopped.resume()
		v.Queued(proving.LockPath, 2) // it queues again
		stopped.silent()
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		stopped.holds()
		stopped.leaves()
		v.Queued(proving.LockPath, 0)
	})
}
