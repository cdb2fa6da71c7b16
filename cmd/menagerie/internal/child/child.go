// Package child runs one command the way a shell runs a job: in a process group of its
// own, which can be signalled as a whole, in the foreground of the terminal if there is one.
package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// ErrNotFound and ErrCannotRun are the two ways in which a command cannot be started.
// Shells give them the exit codes 127 and 126.
var (
	ErrNotFound  = errors.New("command not found")
	ErrCannotRun = errors.New("not executable")
)

// Resolve finds the program that name stands for, as exec does: in PATH unless there is a
// slash in the name. Errors wrap ErrNotFound or ErrCannotRun.
func Resolve(name string) (string, error) {
	program, err := exec.LookPath(name)
	switch {
	case err == nil:
		return program, nil
	case name == "":
		return "", fmt.Errorf("%q: %w", name, ErrNotFound)
	case errors.Is(err, exec.ErrDot):
		// Found in the working directory through an empty entry in PATH. Go does not run
		// such a program by accident, and nor does this.
		return "", fmt.Errorf("%s: %w: it is only in the working directory; write %s", name, ErrNotFound, "./"+name)
	case errors.Is(err, exec.ErrNotFound) && !exists(name), errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	return "", fmt.Errorf("%s: %w", name, ErrCannotRun)
}

// exists reports whether a file called name lies in a directory of PATH. LookPath found
// nothing executable there, so if it does, it cannot be run.
func exists(name string) bool {
	if filepath.Base(name) != name {
		return false // not looked up in PATH
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Child is a started command. Its methods may be called concurrently.
type Child struct {
	cmd  *exec.Cmd
	tty  *terminal
	done chan struct{}
	err  error // of Wait; read it after done
}

// Start runs program with the arguments argv (argv[0] is its own name) and the environment
// env, on the standard streams of this process. If that fails the error wraps ErrNotFound
// or ErrCannotRun.
//
// mayContinue is asked before a command that the user had stopped goes on. On Linux the
// kernel kills the command if this process dies.
func Start(program string, argv, env []string, mayContinue func() bool) (*Child, error) {
	return StartWith(os.Stdin, program, argv, env, mayContinue)
}

// StartWith is Start for a command with another standard input.
func StartWith(stdin *os.File, program string, argv, env []string, mayContinue func() bool) (*Child, error) {
	c := &Child{
		cmd:  &exec.Cmd{Path: program, Args: argv, Env: env, Stdin: stdin, Stdout: os.Stdout, Stderr: os.Stderr},
		tty:  controllingTerminal(),
		done: make(chan struct{}),
	}
	started := make(chan error, 1)
	go func() {
		// Linux ties the parent-death signal to the thread that forked, not to the process.
		// So this goroutine keeps its thread until the command has ended; as it never
		// unlocks it, the thread ends with it.
		runtime.LockOSThread()
		starting.Lock()
		configure(c.cmd, c.tty)
		err := c.cmd.Start()
		ignoreOthersWrites()
		starting.Unlock()
		if err != nil && tookForeground(c.cmd) {
			c.tty.reclaim() // the child took it before it failed
		}
		started <- err
		if err != nil {
			return
		}
		c.err = c.cmd.Wait()
		c.tty.takeBack(c.PID())
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, startError(program, err)
	}
	go c.watchStops(mayContinue)
	return c, nil
}

// starting is held while this process does not ignore SIGTTOU: the end of another start would have it ignored too early.
var starting sync.Mutex

func startError(program string, err error) error {
	reason := errors.Unwrap(err)
	if reason == nil {
		reason = err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: %w", program, ErrNotFound, reason)
	}
	return fmt.Errorf("%s: %w: %w", program, ErrCannotRun, reason)
}

// PID is the process id of the command.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the command has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// ExitCode returns what a shell would report: the exit code, or 128 + n if signal n ended
// the command. It waits for the end.
func (c *Child) ExitCode() int {
	<-c.done
	var exit *exec.ExitError
	if c.err != nil && !errors.As(c.err, &exit) {
		return 1 // the wait itself failed, so nobody knows
	}
	return exitCode(c.cmd.ProcessState)
}

// Signal sends sig to the whole group of the command. Once the command has ended it does
// nothing.
func (c *Child) Signal(sig os.Signal) {
	select {
	case <-c.done:
	default:
		signalGroup(c.cmd.Process, sig)
	}
}

// SignalCommand sends sig to the command alone. Once it has ended it does nothing.
func (c *Child) SignalCommand(sig os.Signal) { _ = c.cmd.Process.Signal(sig) }

// Terminate asks the whole group to end, kills what is left of it after grace and returns
// when the command has ended and nothing of its group is left (as far as can be told).
func (c *Child) Terminate(grace time.Duration) {
	terminateGroup(c.cmd.Process)
	deadline := time.After(grace)
	poll := time.NewTicker(10 * time.Millisecond) // no system tells when the last of a group has ended
	defer poll.Stop()
	for {
		if c.ended() && !groupAlive(c.cmd.Process) {
			return
		}
		select {
		case <-deadline:
			killGroup(c.cmd.Process)
			<-c.done
			return
		case <-poll.C:
		}
	}
}

func (c *Child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
