// Command rivals measures other libraries' locks and meeting points beside this module's, in one interleaved run against
// one ZooKeeper server or three. docs/benchmarks.md has its results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-menagerie/menagerie/bench"
	"github.com/go-menagerie/menagerie/zksync"
)

// options are the flags.
type options struct {
	peers, scenarios string
	clients          numbers
	rounds           int
	duration         time.Duration
	servers          string
	ensemble         int
	near             string
	write            string
	results, name    string
	render           bool
}

func main() {
	var o options
	flag.StringVar(&o.peers, "peer", "", "measure these peers only: `names`, separated by commas")
	flag.StringVar(&o.scenarios, "scenario", "", "measure these scenarios only: `names`, separated by commas")
	flag.Var(&o.clients, "clients", "`numbers` of clients, separated by commas, for the scenarios that can have them")
	flag.IntVar(&o.rounds, "rounds", 5, "how many rounds the medians are of")
	flag.DurationVar(&o.duration, "duration", 2500*time.Millisecond, "how long each peer works in each scenario, over all rounds")
	flag.StringVar(&o.servers, "servers", "", "`addresses` of a ZooKeeper ensemble that nobody else uses; by default they are started")
	flag.IntVar(&o.ensemble, "ensemble", 1, "start so `many` servers, 1 or 3, with their logs synced")
	flag.StringVar(&o.near, "near", "", "with three servers, connect each peer's clients to the `places`: leader, follower, or both, separated by a comma, in turns")
	flag.StringVar(&o.write, "write", "", "save the results, and write them between the markers of this `page`; its charts go into the folder images beside it")
	flag.StringVar(&o.results, "results", "bench/rivals/results", "the `folder` of saved results; the page has all of them")
	flag.StringVar(&o.name, "name", mainRun, "the `name` of the saved results; the page gives others than the default a table below it")
	flag.BoolVar(&o.render, "render", false, "measure nothing; write the page from the saved results")
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
		// Before a run, too: what is wrong with the page, or with what is saved, should not be found after it.
		if err := render(o.write, o.results); err != nil || o.render {
			return err
		}
	}
	if err := scenariosExist(list(o.scenarios)); err != nil {
		return err
	}
	t, err := o.begin(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	field, err := assemble(ctx, list(o.peers))
	defer field.close()
	if err != nil {
		return err
	}
	for _, line := range field.absent {
		fmt.Fprintln(progress, "left out:", line)
	}
	s, err := zksync.Connect(ctx, t.servers, zksync.WithTimeout(timeout))
	if err != nil {
		return err
	}
	defer s.Close()
	r := &report{Began: time.Now(), Machine: bench.Machine(), Server: bench.ServerVersion(ctx, t.servers, bench.Secured{}) + t.kind, Go: goVersion(),
		Rounds: o.rounds, Duration: o.duration, Peers: field.what, Absent: field.absent}
	line := bench.NewLine(progress)
	for _, part := range field.parts(list(o.scenarios), o.clients) {
		rows, err := bench.Run(ctx, s.Conn(), bench.Config{
			Servers: t.servers, Timeout: timeout, Peers: t.near(part.peers), Scenarios: part.scenarios,
			Duration: o.duration, Rounds: min(o.rounds, part.rounds), WarmUp: warmUp, Progress: line.Show,
		})
		r.Rows = append(r.Rows, rows...)
		if err != nil {
			line.Clear()
			return errors.Join(err, r.print(out))
		}
	}
	line.Clear()
	if len(r.Rows) == 0 {
		return errors.New("nothing to measure: name a scenario, or another peer than menagerie")
	}
	if o.write == "" {
		return r.print(out)
	}
	r.Took = time.Since(r.Began)
	if err := r.save(o.results, o.name); err != nil {
		return err
	}
	return render(o.write, o.results)
}

// print shows what there is, also after an interruption.
func (r *report) print(out io.Writer) error {
	if len(r.Rows) == 0 {
		return nil
	}
	r.Took = time.Since(r.Began)
	_, err := io.WriteString(out, r.markdown())
	return err
}

// numbers are those of a flag.
type numbers []int

func (n *numbers) String() string { return strings.Trim(fmt.Sprint(*n), "[]") }

func (n *numbers) Set(s string) error {
	for _, word := range list(s) {
		v, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		*n = append(*n, v)
	}
	return nil
}

// list is the words between commas.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
