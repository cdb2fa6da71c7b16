package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/internal/bench"
	"github.com/go-menagerie/menagerie/internal/zkserver"
)

func (a *app) benchCommand() *cobra.Command {
	duration := positiveDuration(2 * time.Second)
	clients := countList{1, 2, 8, 32}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench [--duration D] [--clients N,N...] [--json]",
		Short: "Measure this lock, go-zookeeper's and the floor",
		Long: `Measures three peers in one run, in short slices that alternate:

  menagerie  zksync.Mutex
  gozk-lock  zk.Lock of github.com/go-zookeeper/zk
  floor      create and delete of an ephemeral sequential node, without waiting: the least
             that a lock on ZooKeeper needs

The scenario "uncontended" has one client. The scenario "contended" has more clients on one path,
each with a session of its own. An operation is an acquisition and its release. p50_us and p99_us are
the time from the call of the acquisition to its return (floor: of the create).
requests_per_op is the number of requests that the clients send to the servers, without pings.

Without --servers it measures an in-process ZooKeeper, without disk and network. So the numbers are
not those of a real ensemble.`,
		Example: `  menagerie bench --clients 1,8 --duration 1s
  menagerie bench --servers 127.0.0.1:2181 --clients 2 --duration 1s
  menagerie bench --clients 1 --duration 500ms --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.bench(cmd, bench.Config{Duration: duration.value(), Rounds: 5, Scenarios: scenarios(clients), Peers: bench.Peers()}, asJSON)
		},
	}
	cmd.Flags().Var(&duration, "duration", "measure each peer with each number of clients for `D`")
	cmd.Flags().Var(&clients, "clients", "numbers of clients to measure")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array of objects")
	return cmd
}

func (a *app) bench(cmd *cobra.Command, cfg bench.Config, asJSON bool) error {
	ctx, stop := signalContext(cmd.Context())
	defer stop()
	if a.servers == "" {
		address, end, err := inProcess(zkserver.Config{})
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
	cfg.Servers, cfg.Timeout = a.servers, a.timeout.value()
	cfg.Secured = bench.Secured{TLS: a.tlsConfig, ACL: a.nodeACL}
	for _, c := range a.credentials {
		cfg.Secured.Auth = append(cfg.Secured.Auth, bench.Credential{Scheme: c.scheme, Secret: []byte(c.secret)})
	}
	cfg.Progress = func(bench.Progress) {}
	rows, err := bench.Run(ctx, s.Conn(), cfg)
	var i *interruption
	switch {
	case errors.As(err, &i):
		return exitWith(i.exitCode(), "%v", i)
	case err != nil:
		return failure("%s: %s", a.servers, forPeople(err))
	case asJSON:
		return printJSON(a.stdout, rows)
	}
	return printBench(a.stdout, rows)
}

func printBench(w io.Writer, rows []bench.Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tclients\tpeer\tops/s\tp50 us\tp99 us\trequests/op\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.0f\t%.0f\t%.0f\t%s\t\n",
			r.Scenario, r.Clients, r.Peer, r.OpsPerS, r.P50, r.P99, number(r.RequestsPerOp))
	}
	return outputError(t.Flush())
}

// countList is a flag value: numbers of clients, separated by commas.
type countList []int

const maxClients = 1000

func (l *countList) Type() string { return "numbers" }

func (l *countList) String() string {
	texts := make([]string, len(*l))
	for i, n := range *l {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func (l *countList) Set(s string) error {
	var all countList
	for text := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n <= 0 || n > maxClients {
			return fmt.Errorf("want whole numbers from 1 to %d, separated by commas, such as 1,8,32", maxClients)
		}
		all = append(all, n)
	}
	*l = all
	return nil
}

func scenarios(clients []int) (all []bench.Scenario) {
	for _, name := range []string{bench.Uncontended, bench.Contended} {
		s, _ := bench.ScenarioNamed(name)
		all = append(all, s.With(clients))
	}
	return all
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}
