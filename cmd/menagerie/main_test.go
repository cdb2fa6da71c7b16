//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/testing/loopback"
	"github.com/go-menagerie/menagerie/zktest"
)

// patience bounds every wait for another process. It is only ever waited out by a failure.
const patience = 2 * time.Minute

// pause is between two looks at something that is waited for.
const pause = 5 * time.Millisecond

// binary is the program under test, built once: these tests use it as a user does.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(chattersEnv) != "" {
		os.Exit(chatter())
	}
	os.Exit(buildAndRun(m))
}

// chattersEnv makes the tests' own program a holder that starts commands and writes all the while.
const chattersEnv = "MENAGERIE_TEST_CHATTERS"

// chatter returns an exit code: 0 if all commands ran, none of them ignored SIGTTOU, and all writes succeeded.
func chatter() (code int) {
	const ignoresTTOU = `grep -q "^SigIgn:.*[2367abef].....$" /proc/$$/status` // signal n has bit n-1
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	written := make(chan error, 1)
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			child.FromBackground(func() { _, err = fmt.Fprint(os.Stderr, ".") })
		}
		written <- err
	}()
	for range 10 {
		c, err := child.Start("/bin/sh", []string{"sh", "-c", ignoresTTOU}, os.Environ(), func() bool { return true })
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGTTOU) // as when another process of the group writes
		if c.ExitCode() != 1 {
			code = 2
		}
	}
	enough()
	if err := <-written; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	return code
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "menagerie-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "menagerie")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	for _, name := range []string{serversEnv, authEnv, tlsEnv, tlsEnv + "_CA", tlsEnv + "_CERT", tlsEnv + "_KEY", tlsEnv + "_SERVER_NAME", tlsEnv + "_INSECURE"} {
		os.Unsetenv(name)
	}
	hearSignals()
	return m.Run()
}

// hearSignals has the programs that the tests start hear signals. A shell that runs the
// tests in the background has SIGINT ignored, nohup has SIGHUP, and whoever is started
// inherits that, rightly. A signal that is listened to is not inherited.
func hearSignals() {
	for _, sig := range forwardedSignals {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// server is an in-process ZooKeeper on TCP.
type server struct {
	*zktest.Server
	addr string
}

// startServer runs a server whose sessions may be short. Those of the tests last for 3 s at least: a busy machine
// may not let a process run, or this one, in which the server is, for a second or two.
func startServer(t *testing.T) *server {
	t.Helper()
	l, err := loopback.Listen()
	require.NoError(t, err)
	s := &server{
		Server: zktest.Start(zktest.WithTick(50*time.Millisecond), zktest.WithTimeoutLimits(100*time.Millisecond, time.Minute)),
		addr:   l.Addr().String(),
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	return s
}

// ChildCount is the number of children of a node; 0 if it does not exist.
func (s *server) ChildCount(path string) int { return len(s.Children(path)) }

// queued waits until n entries queue in path.
func (s *server) queued(t *testing.T, path string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.ChildCount(path) == n }, patience, pause,
		"%d entries in %s, want %d", s.ChildCount(path), path, n)
}

// nobody returns the address of a port that nobody listens on.
func nobody(t *testing.T) string {
	t.Helper()
	addr, free, err := loopback.Refusing()
	require.NoError(t, err)
	t.Cleanup(free)
	return addr
}

// program is a running menagerie.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout buffer
	stderr buffer
	done   chan struct{}
}

// start runs the binary. The test kills it at its end if it is still there.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with more environment variables.
func startWith(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	return startBy((*exec.Cmd).Start, t, env, args...)
}

// startBy is startWith for programs that somebody else starts.
func startBy(starter func(*exec.Cmd) error, t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(binary, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	// CMD may leave a process behind that has the pipes open.
	p.cmd.WaitDelay = 5 * time.Second
	require.NoError(t, starter(p.cmd))
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the exit code tells
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// run runs the binary to its end.
func run(t *testing.T, args ...string) *program {
	t.Helper()
	p := start(t, args...)
	p.wait()
	return p
}

// wait waits for the end and returns the exit code.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		require.FailNow(p.t, "still running", "%v\nstdout: %s\nstderr: %s", p.cmd.Args[1:], p.stdout.String(), p.stderr.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// prints waits until text stands in standard output.
func (p *program) prints(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.stdout.String(), text) }, patience, pause,
		"%q is not printed; stdout: %s stderr: %s", text, lazy{&p.stdout}, lazy{&p.stderr})
}

// failed checks exit code and that the complaint is one line, with all the fragments in it. Before it
// may stand that nobody could be reached.
func (p *program) failed(code int, fragments ...string) {
	p.t.Helper()
	require.Equal(p.t, code, p.wait(), "stderr: %s", p.stderr.String())
	line := p.stderr.String()
	for first, rest, ok := strings.Cut(line, "\n"); ok && strings.HasPrefix(first, "menagerie: cannot connect to "); first, rest, ok = strings.Cut(line, "\n") {
		line = rest
	}
	require.True(p.t, strings.HasPrefix(line, "menagerie: "), "stderr: %s", line)
	require.Equal(p.t, 1, strings.Count(line, "\n"), "not one line: %s", line)
	for _, f := range fragments {
		require.Contains(p.t, line, f)
	}
}

// succeeded checks exit code 0 and that there are no complaints.
func (p *program) succeeded() {
	p.t.Helper()
	require.Equal(p.t, 0, p.wait(), "stderr: %s", p.stderr.String())
	require.Empty(p.t, p.stderr.String())
}

// buffer may be read while a process writes to it.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// holder starts a lock that holds path until it is told to end, and returns when it holds.
func holder(t *testing.T, s *server, path string, flags ...string) *program {
	t.Helper()
	args := append([]string{"lock", path, "--servers", s.addr, "--timeout", "3s"}, flags...)
	p := start(t, append(args, "--", "sh", "-c", "echo holding; exec sleep 600")...)
	p.prints("holding")
	return p
}

// contenders is what ls --json prints.
func contenders(t *testing.T, servers, path string) []tree.Row {
	t.Helper()
	p := run(t, "ls", path, "--json", "--servers", servers)
	p.succeeded()
	var rows []tree.Row
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &rows))
	return rows
}

// alive reports whether a process exists and has not ended.
func alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
