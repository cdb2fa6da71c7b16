// Command ensemble starts one or three real ZooKeeper servers on this machine, and stops them again.
//
//	go run ./internal/testing/ensemble/cmd/ensemble -servers 3                    # until Ctrl-C
//	go run ./internal/testing/ensemble/cmd/ensemble -servers 3 -- CMD ARGS...     # while CMD runs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

const usage = `Starts real ZooKeeper servers on free loopback ports and stops them again.

  ensemble [flags]                   prints the connect string and runs until Ctrl-C
  ensemble [flags] -- CMD ARGS...    runs CMD, with the connect string in MENAGERIE_SERVERS and
                                     MENAGERIE_TEST_SERVERS, and exits with its exit code
  ensemble -install-only             only makes sure that ZooKeeper can be run here

Examples:
  ensemble -servers 3
  ensemble -install -servers 3 -- go test -race -count=1 ./recipes_test/...

The data is temporary. Without CMD, killing the printed process ids is a way to play a crash.

Flags:
`

// Exit codes of its own, chosen as shells do.
const (
	exitFailure = 1
	exitUsage   = 2
	exitCannot  = 126
	exitMissing = 127
	exitSignal  = 128 // plus the signal's number
)

type options struct {
	config      ensemble.Config
	install     bool
	installOnly bool
	command     []string
}

func main() {
	// Notify rather than NotifyContext: CMD decides what a signal means, we only pass it on.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, signals))
}

func run(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	opts, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "ensemble: %v; see ensemble -help\n", err)
		return exitUsage
	}
	code, err := serve(opts, stdout, stderr, signals)
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	return code
}

func parse(args []string, stdout io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("ensemble", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are ours to print, in one line
	flags.IntVar(&opts.config.Servers, "servers", 3, "how many servers: 1 (standalone) or 3")
	flags.DurationVar(&opts.config.Tick, "tick", 500*time.Millisecond, "tickTime; the shortest session timeout is two of it")
	flags.DurationVar(&opts.config.MaxSessionTimeout, "max-session-timeout", time.Minute, "longest session timeout that is granted")
	flags.BoolVar(&opts.config.ForceSync, "force-sync", false, "wait for the disk at every write, as production does")
	flags.Func("D", "a Java system property, `name=value`; may be repeated", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return errors.New("want name=value")
		}
		if opts.config.Properties == nil {
			opts.config.Properties = map[string]string{}
		}
		opts.config.Properties[name] = value
		return nil
	})
	flags.BoolVar(&opts.install, "install", false, "install Java and ZooKeeper with apt-get if they are missing")
	flags.BoolVar(&opts.installOnly, "install-only", false, "the same, and start nothing")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
	}
	opts.command = flags.Args()
	return opts, err
}

// serve returns the exit code and, unless CMD has said what there is to say, the reason for it.
func serve(opts options, stdout, stderr io.Writer, signals <-chan os.Signal) (int, error) {
	ctx, stop := until(signals)
	defer stop()
	if opts.install || opts.installOnly {
		if err := ensemble.Install(ctx, stderr); err != nil || opts.installOnly {
			return failure(err), err
		}
	}
	e, err := ensemble.Start(ctx, opts.config)
	if err != nil {
		return exitFailure, err
	}
	received := stop()
	code, err := use(e, opts.command, stdout, stderr, received, signals)
	return code, errors.Join(err, e.Close())
}

func failure(err error) int {
	if err != nil {
		return exitFailure
	}
	return 0
}

// until returns a context that ends with the first signal. Its stop tells whether there was one, and
// leaves later signals to others.
func until(signals <-chan os.Signal) (ctx context.Context, stop func() os.Signal) {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan os.Signal, 1)
	go func() {
		defer close(got)
		select {
		case s := <-signals:
			got <- s
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() os.Signal {
		cancel()
		return <-got
	}
}

// use runs the command, or waits for a signal if there is none.
func use(e *ensemble.Ensemble, command []string, stdout, stderr io.Writer, received os.Signal, signals <-chan os.Signal) (int, error) {
	if received != nil {
		return exitFailure, errors.New("ensemble: interrupted")
	}
	if len(command) == 0 {
		fmt.Fprintln(stdout, e.Connect())
		for _, s := range e.Servers() {
			fmt.Fprintf(stderr, "server %s, process %d\n", s.Addr(), s.Pid())
		}
		<-signals
		return 0, nil
	}
	fmt.Fprintf(stderr, "ensemble: %s\n", e.Connect())
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "MENAGERIE_SERVERS="+e.Connect(), ensemble.ServersEnv+"="+e.Connect())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return exitMissing, fmt.Errorf("ensemble: %w", err)
		}
		return exitCannot, fmt.Errorf("ensemble: %w", err)
	}
	return await(cmd, signals)
}

// await passes signals on until the command has ended.
func await(cmd *exec.Cmd, signals <-chan os.Signal) (int, error) {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			// That the command has just ended, or that the system knows no signals, is no reason to
			// stop the servers under it.
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return exitFailure, fmt.Errorf("ensemble: %s: %w", cmd.Path, err)
			}
			return exitCode(cmd.ProcessState), nil
		}
	}
}

// exitCode is the command's, with a death by signal told as shells tell it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return state.ExitCode()
}
