package livetest

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait. It is only ever waited out by a failure.
const patience = 3 * time.Minute

// poll waits until cond is true.
func poll(t *testing.T, cond func() bool, state func() any) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(50 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "%v", state())
	}
}

// process is a program that the test has started. It ends with its standard input: after the test, or with the test's process.
type process struct {
	stdin io.WriteCloser

	mu     sync.Mutex
	output bytes.Buffer
}

func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p, p, time.Second
	var err error
	p.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = p.stdin.Close()
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
		if t.Failed() {
			t.Logf("%s has printed:\n%s", cmd.Path, p.printed())
		}
	})
	return p
}

// Write is for exec.Cmd.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(text)
}

func (p *process) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// says waits for a line, and returns what the group of its pattern has matched.
func (p *process) says(t *testing.T, line *regexp.Regexp) (group string) {
	t.Helper()
	poll(t, func() bool {
		m := line.FindStringSubmatch(p.printed())
		if m == nil {
			return false
		}
		group = m[1]
		return true
	}, func() any { return p.printed() })
	return group
}
