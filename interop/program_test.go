package interop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is a foreign program that runs scenarios, several at a time. It answers on its
// output, by the id of the run, and asks there for what only we can do to the server.
type program struct {
	scenarios []string // that it knows

	in     io.WriteCloser
	errors lockedBuffer

	mu   sync.Mutex // guards writing to in, and runs
	runs map[string]*run
}

// run is one scenario under way.
type run struct {
	target  target
	outcome chan outcome
}

// outcome is how it ended.
type outcome struct {
	result string
	err    error
}

// startProgram starts a program that ends with the test.
func startProgram(t *testing.T, argv ...string) *program {
	t.Helper()
	p := &program{runs: map[string]*run{}}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Stderr = &p.errors
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	p.in = in
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = in.Close() // that ends it
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the errors of %s:\n%s", argv[0], p.errors.tail())
		}
	})
	require.True(t, lines.Scan(), "it said nothing:\n%s", &p.errors)
	known, ok := strings.CutPrefix(lines.Text(), "scenarios ")
	require.True(t, ok, "it said %q", lines.Text())
	p.scenarios = strings.Fields(known)
	go p.listen(lines)
	return p
}

// start starts a scenario and does not wait for it.
func (p *program) start(id, scenario string, on target) <-chan outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &run{target: on, outcome: make(chan outcome, 1)}
	p.runs[id] = r
	p.write("run", id, scenario, on.addr())
	return r.outcome
}

// write is called with mu held. An error shows as the end of the program's output.
func (p *program) write(words ...string) {
	_, _ = io.WriteString(p.in, strings.Join(words, " ")+"\n")
}

func (p *program) listen(lines *bufio.Scanner) {
	for lines.Scan() {
		id, rest, _ := strings.Cut(lines.Text(), " ")
		p.mu.Lock()
		r := p.runs[id]
		p.mu.Unlock()
		if r == nil {
			_, _ = fmt.Fprintf(&p.errors, "unexpected output: %s\n", lines.Text())
			continue
		}
		verb, text, _ := strings.Cut(rest, " ")
		switch verb {
		case "result":
			r.outcome <- outcome{result: text}
		case "failed":
			r.outcome <- outcome{err: errors.New(text)}
		default:
			go p.oblige(id, r, verb, strings.Fields(text))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		select {
		case r.outcome <- outcome{err: errors.New("the program ended")}:
		default: // it has an outcome
		}
	}
}

// oblige does to the server what a scenario asks for.
func (p *program) oblige(id string, r *run, verb string, args []string) {
	if err := breakServer(r.target, verb, args); err != nil {
		// The scenario waits for its answer in vain, and fails.
		_, _ = fmt.Fprintf(&p.errors, "%s of %s: %v\n", verb, id, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write("done", id)
}

// await waits for a scenario.
func await(t *testing.T, ch <-chan outcome) string {
	t.Helper()
	select {
	case o := <-ch:
		require.NoError(t, o.err)
		return o.result
	case <-time.After(patience):
		t.Fatal("the scenario does not end")
		return ""
	}
}

// lockedBuffer is what a program writes to its error output.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// tail returns the end of it, which is what a person reads.
func (b *lockedBuffer) tail() string {
	s := b.String()
	return s[max(0, len(s)-16<<10):]
}
