package interop

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// half is a process with Curator's half of a system: see mixed/Half.java.
type half struct {
	t      *testing.T
	on     target
	cmd    *exec.Cmd
	in     io.WriteCloser
	errors lockedBuffer
	over   chan struct{} // closed when the process has ended

	mu      sync.Mutex // guards writing to in, and answers
	answers map[string]chan string
}

// classes is the folder of the compiled program. TestMain makes and removes it; compile fills it.
var (
	classes string
	compile = sync.OnceValue(func() error {
		sources, err := filepath.Glob("mixed/*.java")
		if err != nil {
			return err
		}
		out, err := exec.Command("javac", append([]string{"-cp", jars, "-nowarn", "-d", classes}, sources...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	})
)

// startHalf starts the program on a server. It is killed when the test ends.
func startHalf(t *testing.T, on target) *half {
	t.Helper()
	require.NoError(t, compile())
	h := &half{t: t, on: on, over: make(chan struct{}), answers: map[string]chan string{}}
	h.cmd = exec.CommandContext(t.Context(), "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classes+":"+jars, "Half", on.addr())
	h.cmd.Stderr = &h.errors
	var err error
	h.in, err = h.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, h.cmd.Start())
	go h.listen(bufio.NewScanner(out))
	t.Cleanup(func() {
		h.kill()
		if t.Failed() {
			t.Logf("the errors of Curator's half:\n%s", h.errors.tail())
		}
	})
	return h
}

func (h *half) listen(lines *bufio.Scanner) {
	defer close(h.over)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		h.mu.Lock()
		ch := h.answers[name]
		h.mu.Unlock()
		ch <- text
	}
	_ = h.cmd.Wait()
}

// kill ends the process as kill -9 does, and waits for its end.
func (h *half) kill() {
	_ = h.cmd.Process.Kill()
	<-h.over
}

// peer is one recipe in that process, with a session of its own.
type peer struct {
	h    *half
	name string
}

// open makes a recipe at a path.
func (h *half) open(kind, path string, argument ...string) peer {
	h.t.Helper()
	h.mu.Lock()
	p := peer{h, fmt.Sprintf("%s-%d", kind, len(h.answers))}
	h.answers[p.name] = make(chan string, 1)
	h.mu.Unlock()
	p.ask(append([]string{"open", kind, path}, argument...)...)
	return p
}

// start sends a line whose answer nobody waits for.
func (p peer) start(words ...string) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	_, _ = io.WriteString(p.h.in, p.name+" "+strings.Join(words, " ")+"\n")
}

// try sends a line, and returns the answer.
func (p peer) try(words ...string) (string, error) {
	p.h.t.Helper()
	p.h.mu.Lock()
	answer := p.h.answers[p.name]
	p.h.mu.Unlock()
	p.start(words...)
	select {
	case text := <-answer:
		if text, ok := strings.CutPrefix(text, "ok "); ok {
			return text, nil
		}
		return "", fmt.Errorf("%s: %s", p.name, strings.TrimPrefix(text, "failed "))
	case <-p.h.over:
		return "", fmt.Errorf("%s: the process has ended", p.name)
	case <-time.After(patience):
		return "", fmt.Errorf("%s %q: no answer", p.name, words)
	}
}

// ask sends a line, and returns the answer, which is no failure.
func (p peer) ask(words ...string) string {
	p.h.t.Helper()
	text, err := p.try(words...)
	require.NoError(p.h.t, err)
	return text
}

// session returns how to have its session expired.
func (p peer) session() (expire func() error) {
	p.h.t.Helper()
	words := strings.Fields(p.ask("session"))
	return func() error { return breakServer(p.h.on, "expire", words) }
}
