// Command rivals measures other libraries' locks and meeting points beside this module's, in one interleaved run against
// one ZooKeeper server. docs/benchmarks/results.md has its results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-menagerie/menagerie/bench"
	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
)

// options are the flags.
type options struct {
	peers, scenarios string
	rounds           int
	duration         time.Duration
	servers          string
	write            string
}

func main() {
	var o options
	flag.StringVar(&o.peers, "peer", "", "measure these peers only: `names`, separated by commas")
	flag.StringVar(&o.scenarios, "scenario", "", "measure these scenarios only: `names`, separated by commas")
	flag.IntVar(&o.rounds, "rounds", 5, "how many rounds the medians are of")
	flag.DurationVar(&o.duration, "duration", 2500*time.Millisecond, "how long each peer works in each scenario, over all rounds")
	flag.StringVar(&o.servers, "servers", "", "`addresses` of a ZooKeeper ensemble that nobody else uses; by default one server is started, with its log synced")
	flag.StringVar(&o.write, "write", "", "put the results between the markers of this `page`")
	flag.Parse()
	if flag.NArg() > 0 || o.rounds < 1 || o.duration <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		if ctx.Err() != nil {
			os.Exit(130)
		}
		os.Exit(1)
	}
}

// timeout is that of all sessions.
const timeout = 30 * time.Second

// warmUp does not depend on how long the peers are measured: the server was just started, and so were the rivals.
const warmUp = 2 * time.Second

func run(ctx context.Context, o options, out, progress io.Writer) error {
	if o.write != "" {
		if err := checkPage(o.write); err != nil {
			return err // before the run, not after it
		}
	}
	if err := scenariosExist(list(o.scenarios)); err != nil {
		return err
	}
	kind := ""
	if o.servers == "" {
		kind = " with one server and its log synced"
		e, err := ensemble.Start(ctx, ensemble.Config{Servers: 1, ForceSync: true})
		if err != nil {
			return err
		}
		defer e.Close()
		o.servers = e.Connect()
	}
	field, err := assemble(ctx, list(o.peers))
	defer field.close()
	if err != nil {
		return err
	}
	for _, line := range field.absent {
		fmt.Fprintln(progress, "left out:", line)
	}
	s, err := zksync.Connect(ctx, o.servers, zksync.WithTimeout(timeout))
	if err != nil {
		return err
	}
	defer s.Close()
	r := &report{field: field, rounds: o.rounds, duration: o.duration, began: time.Now()}
	r.server = bench.ServerVersion(ctx, o.servers, bench.Secured{}) + kind
	line := bench.NewLine(progress)
	for _, part := range field.parts(list(o.scenarios)) {
		rows, err := bench.Run(ctx, s.Conn(), bench.Config{
			Servers: o.servers, Timeout: timeout, Peers: part.peers, Scenarios: part.scenarios,
			Duration: o.duration, Rounds: o.rounds, WarmUp: warmUp, Progress: line.Show,
		})
		r.rows = append(r.rows, rows...)
		if err != nil {
			line.Clear()
			return errors.Join(err, r.print(out))
		}
	}
	line.Clear()
	if len(r.rows) == 0 {
		return errors.New("nothing to measure: name a scenario, or another peer than menagerie")
	}
	if o.write == "" {
		return r.print(out)
	}
	r.took = time.Since(r.began)
	return writePage(o.write, r.markdown())
}

// print shows what there is, also after an interruption.
func (r *report) print(out io.Writer) error {
	if len(r.rows) == 0 {
		return nil
	}
	r.took = time.Since(r.began)
	_, err := io.WriteString(out, r.markdown())
	return err
}

// list is the words between commas.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
