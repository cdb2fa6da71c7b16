// Package cluster gives an example its servers and its processes, so that the example itself has only what it shows.
//
// Without further arguments an example starts the in-process ZooKeeper server, and runs itself again, once for each of its
// processes, with the name of the process as its argument. With MENAGERIE_SERVERS=host:port it uses those servers.
package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// servers is the variable that tells a process of an example where the servers are.
const servers = "MENAGERIE_SERVERS"

// Main is the main function of an example. conduct is run in the process that was started by the user; it starts the
// others, which run work. Ctrl-C ends the context.
func Main(conduct func(ctx context.Context, c *Cluster) error, work func(ctx context.Context, s *zksync.Session, name string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if len(os.Args) > 1 {
		err = worker(ctx, work, os.Args[1])
	} else {
		err = conductor(ctx, conduct)
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// Cluster is the servers and processes of an example.
type Cluster struct {
	Servers string // the connect string

	start time.Time
	mu    sync.Mutex // of the output, and of all
	all   []*Process
}

// Timeout is the session timeout of the processes: what died is noticed after that time. It is long enough for a busy
// machine, which may let a process stand still for a second.
const Timeout = 5 * time.Second

func worker(ctx context.Context, work func(context.Context, *zksync.Session, string) error, name string) error {
	s, err := zksync.Connect(ctx, os.Getenv(servers), zksync.WithName(name), zksync.WithTimeout(Timeout))
	if err != nil {
		return err
	}
	defer s.Close()
	return work(ctx, s, name)
}

func conductor(ctx context.Context, conduct func(context.Context, *Cluster) error) error {
	c := &Cluster{Servers: os.Getenv(servers), start: time.Now()}
	if c.Servers == "" {
		srv, err := zktest.StartAddr("127.0.0.1:0")
		if err != nil {
			return err
		}
		defer srv.Close()
		c.Servers = srv.Addr()
	}
	defer c.end()
	return conduct(ctx, c)
}

// end ends the processes that still run.
func (c *Cluster) end() {
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	for _, p := range all {
		_ = p.cmd.Process.Kill()
		_ = p.wait()
	}
}

// Connect opens a session of the conductor itself.
func (c *Cluster) Connect(ctx context.Context) (*zksync.Session, error) {
	return zksync.Connect(ctx, c.Servers, zksync.WithName("conductor"), zksync.WithTimeout(Timeout))
}

// Say prints a line with the time since the start.
func (c *Cluster) Say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Printf("%5.1fs  %s\n", time.Since(c.start).Seconds(), fmt.Sprintf(format, args...))
}

// Process is a process of an example.
type Process struct {
	Name string
	cmd  *exec.Cmd
	out  sync.WaitGroup
	once sync.Once // it is waited for
	err  error     // with which it ended
	c    *Cluster
}

// Start starts a process, which is killed when ctx ends. What it prints is shown with its name.
func (c *Cluster) Start(ctx context.Context, name string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, cmd: exec.CommandContext(ctx, self, name), c: c}
	p.cmd.Env = append(os.Environ(), servers+"="+c.Servers)
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	p.out.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.Say("%-10s %s", name, lines.Text())
		}
	})
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.all = append(c.all, p)
	c.mu.Unlock()
	return p, nil
}

// Kill ends the process as kill -9 does: it can do nothing about that.
func (p *Process) Kill() error {
	p.c.Say("%-10s killed with SIGKILL", p.Name)
	err := p.cmd.Process.Kill()
	_ = p.wait() // it says that it was killed
	return err
}

// Wait waits until the process has ended.
func (p *Process) Wait() error {
	if err := p.wait(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

func (p *Process) wait() error {
	p.once.Do(func() {
		p.err = p.cmd.Wait()
		p.cmd.Stdout.(io.Closer).Close()
		p.out.Wait()
	})
	return p.err
}

// All starts processes, and waits until all have ended.
func (c *Cluster) All(ctx context.Context, names ...string) error {
	var all []*Process
	for _, name := range names {
		p, err := c.Start(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	var failed error
	for _, p := range all {
		if err := p.Wait(); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// Names are n names that begin alike: worker-1, worker-2 ...
func Names(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i+1)
	}
	return names
}
