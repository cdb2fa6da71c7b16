//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// TestMain is the service itself in the processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("ZOOKEEPER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// pod is a process of the service.
type pod struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // what it prints; closed when it has ended
}

// start starts the service with a session timeout and a session file.
func start(t *testing.T, srv *zktest.Server, timeout, file string) *pod {
	self, err := os.Executable()
	require.NoError(t, err)
	p := &pod{t: t, cmd: exec.CommandContext(context.Background(), self), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), "ZOOKEEPER="+srv.Addr()+"/shop", "SESSION_TIMEOUT="+timeout, "ORDER_TIMEOUT=30s",
		"SESSION_FILE="+file, "LISTEN=127.0.0.1:0", "POD_NAME=orders-0")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	return p
}

// says waits for a line that contains part, and returns the lines before it, too.
func (p *pod) says(part string) (all []string) {
	late := time.After(time.Minute)
	for {
		select {
		case line, ok := <-p.lines:
			require.True(p.t, ok, "it has ended without %q: %q", part, all)
			if all = append(all, line); strings.Contains(line, part) {
				return all
			}
		case <-late:
			require.Fail(p.t, "it does not say "+part, "%q", all)
		}
	}
}

// The first pod is terminated: it ends what it has begun, and the next one works at once.
func TestATerminatedPodEndsItsOrderAndFreesTheLock(t *testing.T) {
	t.Parallel()
	srv := zktest.RunAddr(t, "127.0.0.1:0")
	dir := t.TempDir()
	first := start(t, srv, "1m", filepath.Join(dir, "first"))
	first.says("begins an order")
	second := start(t, srv, "1m", filepath.Join(dir, "second"))
	zktest.WaitChildren(t, srv, "/shop/orders/lock", 2)
	began := time.Now()
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	last := ""
	for last = range first.lines {
	}
	require.Contains(t, last, "ends an order", "the one that was under way")
	require.NoError(t, first.cmd.Wait(), "exit code 0")
	second.says("works")
	require.Less(t, time.Since(began), 30*time.Second, "it need not wait until the session expires")
	require.NoError(t, second.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, second.cmd.Wait())
}

// The container is killed, and started again in the same pod: it ends the session of the killed one.
func TestAContainerThatIsStartedAgainWorksAtOnce(t *testing.T) {
	t.Parallel()
	srv := zktest.RunAddr(t, "127.0.0.1:0")
	file := filepath.Join(t.TempDir(), "session")
	killed := start(t, srv, "1m", file)
	killed.says("works")
	require.NoError(t, killed.cmd.Process.Kill())
	_ = killed.cmd.Wait()
	began := time.Now()
	again := start(t, srv, "1m", file)
	again.says("works")
	require.Less(t, time.Since(began), 30*time.Second, "it need not wait until the session expires")
	require.NoError(t, again.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, again.cmd.Wait())
}

// ready asks for the readiness: an HTTP status, or 0 without an answer.
func ready(t *testing.T, address string) int {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // timeoutSeconds of the probe
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ready", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// While the servers are away the pod is not ready, from a third of the session timeout on. It is not ended for that.
func TestThePodIsReadyWhileTheServersAnswer(t *testing.T) {
	t.Parallel()
	srv := zktest.RunAddr(t, "127.0.0.1:0")
	srv.Stop()
	p := start(t, srv, "6s", filepath.Join(t.TempDir(), "session"))
	_, address, _ := strings.Cut(p.says("listens at")[0], "listens at ")
	require.Zero(t, ready(t, address), "no session yet")
	srv.Restart()
	p.says("works")
	is := func(code int) {
		require.Eventually(t, func() bool { return ready(t, address) == code }, time.Minute, 50*time.Millisecond, "%d", code)
	}
	is(http.StatusOK)
	thaw := srv.Freeze()
	is(http.StatusServiceUnavailable)
	thaw()
	is(http.StatusOK)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	for range p.lines {
	}
	require.NoError(t, p.cmd.Wait())
}
