package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-menagerie/menagerie/bench"
)

// warmUp is how long each peer works at most in its first scenario before that is measured.
const warmUp = 2 * time.Second

func (a *app) benchCommand() *cobra.Command {
	o := benchOptions{duration: positiveDuration(2 * time.Second), rounds: 5}
	cmd := &cobra.Command{
		Use: `bench [--scenario NAME,...] [--peer NAME,...] [--clients N,...]
                  [--duration D] [--rounds N] [--out DIR] [--json]
  menagerie bench --list`,
		Short: "Measure locks and meeting points beside go-zookeeper's lock",
		Long: `Measures up to three peers in one run, in short slices that alternate:

  menagerie  this module
  gozk-lock  zk.Lock of github.com/go-zookeeper/zk
  floor      no lock, but the least that one costs on ZooKeeper: make a node, watch the one ahead until it
             is gone, delete the own one. Which one is ahead is told in memory.

Without --scenario it measures "uncontended" (one client) and "contended" (2, 8 and 32 clients on one
path, each with a session of its own). --list shows all scenarios; --scenario all measures them. Each
scenario is measured by the peers that can do it.

A run has rounds. ops/s is the median of the rounds, and min and max are the slowest and the fastest
round. "menagerie is" says how many times as fast menagerie is as that peer: the median of the rounds.
An operation is mostly an acquisition and its release; p50 and p99 are then the time from the call of
the acquisition to its return. requests/op is the number of requests that the
clients send to the servers, without pings.

Ctrl-C ends the run, and what was measured so far is printed. --out writes report.md, a chart of each
scenario (SVG) and results.json into a directory.

Without --servers it measures an in-process ZooKeeper, without disk and network. So the numbers are
not those of a real ensemble.`,
		Example: `  menagerie bench --clients 1,8 --duration 1s
  menagerie bench --list
  menagerie bench --scenario deep --clients 100 --rounds 3
  menagerie bench --scenario barrier,semaphore --peer menagerie --duration 1s --json
  menagerie bench --servers 127.0.0.1:2181 --clients 2 --duration 1s --out "$(mktemp -d)"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.list {
				return printScenarios(a.stdout)
			}
			return a.bench(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.scenarios, "scenario", []string{bench.Uncontended, bench.Contended}, "measure the scenario `NAME`, or all; repeatable")
	flags.StringSliceVar(&o.peers, "peer", nil, "measure only the peer `NAME`; repeatable")
	flags.Var(&o.clients, "clients", "`numbers` of clients, for the scenarios that can have them")
	flags.Var(&o.duration, "duration", "measure each peer, scenario and number of clients for `D`")
	flags.Var(&o.rounds, "rounds", "take the median of `N` rounds, into which the duration is divided")
	flags.StringVar(&o.out, "out", "", "write report.md, charts and results.json into `DIR`")
	flags.BoolVar(&o.asJSON, "json", false, "print an array of objects")
	flags.BoolVar(&o.list, "list", false, "list the scenarios, and end")
	return cmd
}

func (a *app) bench(cmd *cobra.Command, o benchOptions) error {
	for _, name := range []string{"scenario", "peer", "out"} {
		if f := cmd.Flags().Lookup(name); f.Changed && strings.Trim(f.Value.String(), "[]") == "" {
			return usage("--%s is empty: give it a value, or leave the flag out", name)
		}
	}
	cfg := bench.Config{Timeout: a.timeout.value(), Duration: o.duration.value(), Rounds: int(o.rounds), WarmUp: min(warmUp, o.duration.value())}
	var err error
	if cfg.Peers, err = o.chosenPeers(); err != nil {
		return err
	}
	if cfg.Scenarios, err = o.chosenScenarios(cfg.Peers, cmd.Flags().Changed("scenario")); err != nil {
		return err
	}
	if err := o.checkOut(); err != nil {
		return err
	}
	r := bench.Report{Command: "menagerie " + commandLine(cmd), Machine: bench.Machine(), Go: runtime.Version(), Began: time.Now(),
		Duration: cfg.Duration, Rounds: cfg.Rounds, Servers: "an in-process server, without disk and network"}
	err = a.measure(cmd.Context(), cfg, &r)
	return a.reportBench(r, o, err)
}

// measure runs the benchmark, and puts into the report what was measured, also before an error. Errors are ready to be
// reported.
func (a *app) measure(ctx context.Context, cfg bench.Config, r *bench.Report) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	ours := a.servers == ""
	if ours {
		address, end, err := inProcess()
		if err != nil {
			return err
		}
		defer end()
		a.servers = address
		fmt.Fprintln(a.stderr, "no --servers given: measuring an in-process ZooKeeper; a real ensemble has other numbers")
	}
	s, err := a.connect(ctx, a.connectTimeout.value())
	if err != nil {
		return err
	}
	defer goodbye(s)
	cfg.Servers = a.servers
	cfg.Secured = bench.Secured{TLS: a.tlsConfig, Files: a.tlsFiles, ACL: a.nodeACL}
	for _, c := range a.credentials {
		cfg.Secured.Auth = append(cfg.Secured.Auth, bench.Credential{Scheme: c.scheme, Secret: []byte(c.secret)})
	}
	if !ours {
		r.Servers = bench.ServerVersion(ctx, a.servers, cfg.Secured) + " at " + a.servers
	}
	line := bench.NewLine(a.stderr)
	cfg.Progress = line.Show
	r.Rows, err = bench.Run(ctx, s.Conn(), cfg)
	line.Clear()
	if err == nil {
		return nil
	}
	if i, ok := interrupted(ctx); ok {
		return exitWith(i.exitCode(), "%v", i)
	}
	return failure("%s: %s", a.servers, strings.ReplaceAll(forPeople(err), "\n", "; "))
}

// reportBench says what was measured, also if the run has failed.
func (a *app) reportBench(r bench.Report, o benchOptions, failed error) error {
	if failed != nil {
		r.Ended = failed.Error()
	}
	var err error
	switch {
	case o.asJSON:
		err = printJSON(a.stdout, append([]bench.Row{}, r.Rows...)) // nothing is an array, too
	case len(r.Rows) > 0:
		err = printBench(a.stdout, r.Rows)
	}
	if err == nil && o.out != "" && len(r.Rows) > 0 {
		if err = outputError(r.Write(o.out)); err == nil {
			fmt.Fprintf(a.stderr, "the report is in %s\n", o.out)
		}
	}
	return cmp.Or(failed, incomplete(r.Rows), err)
}

// incomplete is an error if a peer could not finish a scenario.
func incomplete(rows []bench.Row) error {
	var errs []string
	for _, r := range rows {
		if r.Error != "" {
			errs = append(errs, fmt.Sprintf("%s, %s with %s: %s", r.Peer, r.Scenario, bench.Clients(r.Clients), people.Replace(r.Error)))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return failure("%s", strings.Join(errs, "; "))
}

// commandLine is what was typed, without secrets.
func commandLine(cmd *cobra.Command) string {
	line := cmd.Name()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := strings.Trim(f.Value.String(), "[]")
		switch {
		case f.Name == "auth":
			value = "..."
		case f.Value.Type() == "bool" && value == "true":
			line += " --" + f.Name
			return
		}
		line += " --" + f.Name + " " + value
	})
	return line
}
