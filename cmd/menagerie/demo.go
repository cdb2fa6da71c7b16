package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/bench/terminal"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/demo"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// demoTimeout is the session timeout of a demo unless --timeout is given. It is short, so
// the lock of a killed worker is free soon. A real server may grant more.
const demoTimeout = 2 * time.Second

// demoPatience is how long a demo may make no progress: longer than servers take to restart.
const demoPatience = time.Minute

func (a *app) demoCommand() *cobra.Command {
	workers, rounds := count(4), count(100)
	var kill, asJSON bool
	var limit, long positiveDuration
	cmd := &cobra.Command{
		Use:   "demo [--workers N] [--rounds N | --for DURATION] [--kill] [--json]",
		Short: "Watch several processes take turns under one lock",
		Long: `Starts N worker processes that increment one unprotected file under one lock. At the end they
wait for each other at a barrier.

With --kill one worker gets SIGKILL in the middle of its hold, and another process takes its
place. You may also kill workers or servers yourself. At the end there is a verdict: the counter must
be exact, no two holds may have overlapped, and every grant must have had a greater token than
the grant before it. If not, the exit code is 1.

Without --servers the demo starts an in-process ZooKeeper. Without --timeout it asks for a session
timeout of ` + demoTimeout.String() + `. --json makes the last line of standard output an object:
  {"workers":4,"rounds":100,"expected":400,"counter":400,"overlaps":0,"tokens_monotonic":true,"killed":1}`,
		Example: `  menagerie demo
  menagerie demo --workers 8 --rounds 50 --kill
  menagerie demo --servers 127.0.0.1:2181 --kill
  menagerie demo --kill --json | tail -n 1`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if workers > demo.MaxWorkers || rounds > demo.MaxRounds {
				return usage("at most %d workers and %d rounds", demo.MaxWorkers, demo.MaxRounds)
			}
			if !cmd.Flags().Changed("timeout") {
				a.timeout = positiveDuration(demoTimeout)
			}
			cfg := demo.Config{Workers: int(workers), Rounds: int(rounds), For: limit.value(), Long: long.value(), Kill: kill, Out: a.stdout}
			if cmd.Flags().Changed("for") {
				cfg.Rounds = demo.MaxRounds
			}
			if asJSON {
				cfg.Out = a.stderr
			}
			return a.demo(cmd, cfg, asJSON)
		},
	}
	cmd.Flags().Var(&workers, "workers", "number `N` of worker processes")
	cmd.Flags().Var(&rounds, "rounds", "increments `N` of each worker")
	cmd.Flags().Var(&limit, "for", "go on for a `DURATION` instead of a number of rounds")
	cmd.MarkFlagsMutuallyExclusive("rounds", "for")
	cmd.Flags().Var(&long, "long", "let one hold in two hundred last for a `DURATION`") // for tests
	_ = cmd.Flags().MarkHidden("long")
	cmd.Flags().BoolVar(&kill, "kill", false, "kill one holder in the middle of its hold")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON on the last line of standard output, progress on standard error")
	return cmd
}

func (a *app) demo(cmd *cobra.Command, cfg demo.Config, asJSON bool) error {
	ctx, stop := signalContext(cmd.Context())
	defer stop()
	if a.servers == "" {
		address, end, err := inProcess(zktest.WithTick(100*time.Millisecond), zktest.WithTimeoutLimits(200*time.Millisecond, time.Minute))
		if err != nil {
			return err
		}
		defer end()
		a.servers = address
		fmt.Fprintf(cfg.Out, "no --servers given: started an in-process ZooKeeper on %s, which keeps nothing\n", address)
	}
	s, err := a.connect(ctx, a.connectTimeout.value(), zksync.WithName("demo"))
	if err != nil {
		return err
	}
	defer goodbye(s)
	program, err := os.Executable()
	if err != nil {
		return failure("cannot find the program of the workers: %v", err)
	}
	cfg.Servers, cfg.Timeout = a.servers, a.timeout.value()
	cfg.Path = fmt.Sprintf("/menagerie-demo-%08x", rand.Uint32())
	cfg.Patience = demoPatience + 3*s.Timeout()
	cfg.Live = terminal.Is(cfg.Out)
	cfg.Command = func(w demo.WorkerConfig) *exec.Cmd {
		args, env := a.inherited()
		worker := exec.Command(program, append(workerArgs(w), args...)...)
		worker.Env = append(os.Environ(), env...)
		return worker
	}
	defer removeNode(s, chroot(a.servers)+cfg.Path)
	howLong := fmt.Sprintf("%d rounds each", cfg.Rounds)
	if cfg.For > 0 {
		howLong = fmt.Sprintf("for %v", cfg.For)
	}
	fmt.Fprintf(cfg.Out, "%d processes, %s, one unprotected file, one lock: %s on %s (session timeout %v)\n",
		cfg.Workers, howLong, cfg.Path, a.servers, s.Timeout())
	result, err := demo.Run(ctx, cfg)
	if err != nil {
		return demoError(err, a.servers)
	}
	return a.printVerdict(result, cfg.Out, asJSON)
}

func demoError(err error, servers string) error {
	var i *interruption
	switch {
	case errors.As(err, &i):
		return exitWith(i.exitCode(), "%v: workers ended, temporary files removed", i)
	case errors.Is(err, demo.ErrStalled):
		return failure("%s: are the servers %s up?", forPeople(err), servers)
	}
	return failure("%s", forPeople(err))
}

func (a *app) printVerdict(r demo.Result, out io.Writer, asJSON bool) error {
	problem := r.Problem()
	verdict := "right: nothing was lost"
	if problem != "" {
		verdict = "WRONG: " + problem
	}
	tokens := "grew with every grant"
	if !r.TokensMonotonic {
		tokens = "did not grow with every grant"
	}
	fmt.Fprintf(out, "counter   %d, expected %d\noverlaps  %d in %d holds (%d lost)\ntokens    %s\nkilled    %d\nverdict   %s\n",
		r.Counter, r.Expected, r.Overlaps, r.Holds, r.Lost, tokens, r.Killed, verdict)
	if asJSON {
		line, err := json.Marshal(r)
		if err != nil {
			return failure("cannot print the result: %v", err)
		}
		if _, err := fmt.Fprintf(a.stdout, "%s\n", line); err != nil {
			return outputError(err)
		}
	}
	if problem != "" {
		return failure("demo: %s", problem)
	}
	return nil
}

// inProcess starts a server on a free loopback port and returns its address and its end.
func inProcess(opts ...zktest.Option) (string, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, failure("cannot start the in-process server: %v; name a server with --servers", err)
	}
	srv := zktest.Start(opts...)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // ends with Close
	}()
	return l.Addr().String(), func() { srv.Close(); <-served }, nil
}

// removeNode removes the directory of a lock that is not used any more. The servers remove
// empty lock directories by themselves after a while, so a failure does not matter.
func removeNode(s *zksync.Session, path string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn := s.Conn(); conn != nil {
			_ = conn.Delete(path, -1)
		}
	}()
	select {
	case <-done:
	case <-time.After(closeLimit):
	}
}

// chroot is the part of a connect string from the first slash on.
func chroot(servers string) string {
	if i := strings.IndexByte(servers, '/'); i >= 0 {
		return strings.TrimSuffix(servers[i:], "/")
	}
	return ""
}

// demoWorkerCommand is the hidden command that demo runs N times.
func (a *app) demoWorkerCommand() *cobra.Command {
	var w demo.WorkerConfig
	cmd := &cobra.Command{
		Use:    workerName,
		Short:  "One worker of a demo",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.Servers, w.Timeout, w.Options = a.servers, a.timeout.value(), a.options()
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			if err := demo.Work(ctx, w, os.Stdin, a.stdout); err != nil {
				return failure("%s", forPeople(err))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&w.Path, "path", "", "lock")
	flags.StringVar(&w.Dir, "dir", "", "directory of counter and journal")
	flags.IntVar(&w.Index, "index", 0, "number of this worker")
	flags.IntVar(&w.Workers, "workers", 0, "number of workers")
	flags.IntVar(&w.Rounds, "rounds", 0, "increments")
	flags.IntVar(&w.HaltRound, "halt-round", 0, "round in which to wait for SIGKILL")
	flags.StringVar(&w.HaltStage, "halt-stage", "", "where in that round")
	flags.DurationVar(&w.Long, "long", 0, "how long some holds last")
	return cmd
}

const workerName = "demo-worker"

// workerArgs is the command line that demoWorkerCommand reads.
func workerArgs(w demo.WorkerConfig) []string {
	return []string{
		workerName, "--path", w.Path, "--dir", w.Dir,
		"--index", strconv.Itoa(w.Index), "--workers", strconv.Itoa(w.Workers), "--rounds", strconv.Itoa(w.Rounds),
		"--halt-round", strconv.Itoa(w.HaltRound), "--halt-stage", w.HaltStage, "--long", w.Long.String(),
	}
}
