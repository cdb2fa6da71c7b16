package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/bench"
)

// foreign is a peer that a program of another language runs. The program stays alive between the slices, so that it stays
// warm: it reads a line for each slice and answers with a line of JSON.
type foreign struct {
	name      string
	argv      []string
	scenarios []string
	cleanup   func()
	running   *program
}

func (p *foreign) Name() string { return p.name }

func (p *foreign) Knows(scenario string) bool { return slices.Contains(p.scenarios, scenario) }

// patience is how long a program may take for a slice besides the time that it works, and for a deep queue.
const patience = 2 * time.Minute

func (p *foreign) Run(ctx context.Context, s bench.Slice) (bench.Sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Duration+patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	if p.running == nil {
		var err error
		if p.running, err = startProgram(p.argv); err != nil {
			return bench.Sample{}, err
		}
	}
	a, err := p.running.ask(ctx, request(s))
	if err != nil {
		// Threads of it may hang: the next slice gets a new program.
		p.running.kill()
		p.running = nil
		return bench.Sample{}, err
	}
	return a.sample(s), nil
}

func (p *foreign) Close() error {
	if p.running != nil {
		p.running.end()
	}
	p.cleanup()
	return nil
}

// request is the line that asks for a slice: words without spaces in them.
func request(s bench.Slice) string {
	hosts, root, rooted := strings.Cut(s.Servers, "/")
	if rooted {
		root = "/" + root
	}
	return fmt.Sprintf("%s %d %.3f %s %s %d %d\n", s.Scenario.Name, s.Clients, s.Duration.Seconds(), root+s.Path, hosts,
		s.Timeout.Milliseconds(), bench.Permits)
}

// answer is what the program says.
type answer struct {
	Error            string
	Ops              int
	ElapsedS         float64   `json:"elapsed_s"`
	CPUS             float64   `json:"cpu_s"` // processor time of the program
	Requests         int64     // as the servers have counted them, -1 if they do not tell
	QueueingS        float64   `json:"queueing_s"`
	QueueingRequests int64     `json:"queueing_requests"`
	LatenciesUS      []float64 `json:"latencies_us"` // a sample of them
}

func (a answer) sample(s bench.Slice) bench.Sample {
	out := bench.Sample{Ops: a.Ops, Elapsed: seconds(a.ElapsedS), Traffic: received(a.Requests), CPU: seconds(a.CPUS)}
	for _, l := range a.LatenciesUS {
		out.Latencies = append(out.Latencies, seconds(l/1e6))
	}
	if s.Scenario.Drains {
		out.QueueingElapsed, out.Queueing = seconds(a.QueueingS), received(a.QueueingRequests)
	}
	return out
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func received(requests int64) bench.Traffic {
	return bench.Traffic{Requests: requests, BytesIn: bench.Uncounted, BytesOut: bench.Uncounted}
}

// program is one that is running. It ends with its input, and so with this process.
type program struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte // closed when the program has ended
	log   bytes.Buffer
}

func startProgram(argv []string) (*program, error) {
	p := &program{cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan []byte, 1)}
	p.cmd.Stderr = &p.log
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				break
			}
			p.lines <- line
		}
		_ = p.cmd.Wait() // what it has said counts
	}()
	return p, nil
}

func (p *program) ask(ctx context.Context, request string) (answer, error) {
	if _, err := io.WriteString(p.in, request); err != nil {
		return answer{}, err
	}
	select {
	case line, ok := <-p.lines:
		var a answer
		if !ok {
			return a, fmt.Errorf("the program ended: %s", tail(p.log.String()))
		}
		if err := json.Unmarshal(line, &a); err != nil {
			return a, fmt.Errorf("answer %q: %w", line, err)
		}
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// end ends it in good order.
func (p *program) end() {
	_ = p.in.Close()
	late := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	p.drain()
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	p.drain()
}

func (p *program) drain() {
	for range p.lines { // until it has ended
	}
}
