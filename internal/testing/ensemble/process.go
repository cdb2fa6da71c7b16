package ensemble

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// process is one life of a server. A goroutine waits for its end, which nothing else does.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed after the process has been waited for
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// kill returns once the process is gone. That it is gone already is not an error.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// stop asks the process to end and kills it if it does not.
func (p *process) stop() error {
	// A frozen process would not notice the request; thawing any other changes nothing.
	if err := errors.Join(p.thaw(), p.terminate()); err != nil {
		return p.kill()
	}
	t := time.NewTimer(stopLimit)
	defer t.Stop()
	select {
	case <-p.exited:
		return nil
	case <-t.C:
		return p.kill()
	}
}

// parent is the thread that starts the servers. Linux can kill a process when its parent dies, but
// takes the *thread* that started it for the parent, and Go's threads may end before the program
// does. So one goroutine stays on one thread, and starts all servers of an ensemble.
type parent struct {
	work chan func()
	quit chan struct{}
	once sync.Once
	done chan struct{}
}

func newParent() *parent {
	p := makeParent()
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.serve()
	}()
	return p
}

// newParentIn is newParent with a thread that enter has changed for good, so that no other goroutine may have it:
// it ends with the parent.
func newParentIn(enter func() error) (*parent, error) {
	p := makeParent()
	entered := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		err := enter()
		entered <- err
		if err == nil {
			p.serve()
		}
	}()
	return p, <-entered
}

func makeParent() *parent {
	return &parent{work: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
}

func (p *parent) serve() {
	for {
		select {
		case f := <-p.work:
			f()
		case <-p.quit:
			return
		}
	}
}

// do runs f on the thread and returns what it returns.
func (p *parent) do(f func() error) error {
	result := make(chan error, 1)
	select {
	case p.work <- func() { result <- f() }:
		return <-result
	case <-p.done:
		return errClosed
	}
}

// stop returns when no process can be started any more.
func (p *parent) stop() {
	p.once.Do(func() { close(p.quit) })
	<-p.done
}

func (p *parent) stopped() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// start runs cmd in a process group of its own, with both outputs going to log.
func (p *parent) start(cmd *exec.Cmd, log *os.File) (*process, error) {
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = serverAttributes()
	if err := p.do(cmd.Start); err != nil {
		return nil, err
	}
	proc := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		// How it ended does not matter here: whoever waits looks into the log.
		_ = cmd.Wait()
		close(proc.exited)
	}()
	return proc, nil
}

// errClosed is returned when a server is started after Close.
var errClosed = errors.New("ensemble is closed")
