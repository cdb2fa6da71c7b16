package demo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// The words that workers and parent exchange through pipes.
const (
	wordRound   = "round"   // a round is done
	wordHolding = "holding" // holding, and waiting to be killed
	wordLost    = "lost"    // a lease was lost, the round will be repeated
	wordMeet    = "meet"    // so many rounds are done and no more will be, waiting for the others
	wordEnough  = "enough"  // to the worker: no more rounds
	wordGo      = "go"      // to the worker: everybody is here
)

// message is what a worker says, or that its process has ended.
type message struct {
	from *process
	word string
	n    int
	// ended is set for the last message of a process; err is why, nil for exit code 0.
	ended bool
	err   error
}

// process is one worker process.
type process struct {
	index  int
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr limitedBuffer

	// The rest belongs to the goroutine that runs the demo.
	rounds  int
	arrived bool
	doomed  bool // killed by the demo
}

// startProcess runs cmd as worker index. Its messages go to the channel, the last of them
// when the process has ended and been waited for.
func startProcess(cmd *exec.Cmd, index int, messages chan<- message) (*process, error) {
	p := &process{index: index, cmd: cmd}
	ownGroup(cmd)
	cmd.Stderr = &p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			m := message{from: p}
			if _, err := fmt.Sscan(lines.Text(), &m.word, &m.n); err == nil {
				messages <- m
			}
		}
		messages <- message{from: p, ended: true, err: cmd.Wait()}
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill is SIGKILL: the process gets no chance to say goodbye.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// dismiss tells the worker that the demo is over.
func (p *process) dismiss() { _ = p.in.Close() }

// enough has the worker begin no more rounds.
func (p *process) enough() { _, _ = io.WriteString(p.in, wordEnough+"\n") }

// release ends the meeting for this worker.
func (p *process) release() { _, _ = io.WriteString(p.in, wordGo+"\n") }

// failure words why a worker ended that should not have.
func (p *process) failure(err error) error {
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		err = errors.New(strings.TrimPrefix(said, "menagerie: "))
	}
	return fmt.Errorf("worker %d (pid %d): %w", p.index, p.pid(), err)
}

// limitedBuffer keeps the beginning of what is written to it. It is written by the
// goroutine of os/exec and read after Wait.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(data []byte) (int, error) {
	const limit = 4096
	if room := limit - b.Len(); room > 0 {
		b.Buffer.Write(data[:min(room, len(data))])
	}
	return len(data), nil
}
