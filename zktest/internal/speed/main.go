// Command speed compares the in-process server with a real one: operations per second of the same
// client, in one run, in short slices that alternate so that whatever else the machine does hits both.
//
//	go run ./internal/testing/ensemble/cmd/ensemble -servers 1 -- go run ./zktest/internal/speed
//
// It measures three servers: the real one at the first address of -servers, zktest over TCP, and zktest over
// connections in memory. "1/64" means one connection with 64 requests under way at any time. An operation of
// "create+delete" is a pair of requests.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

func main() {
	servers := flag.String("servers", os.Getenv("MENAGERIE_SERVERS"), "a real server; without one only zktest is measured")
	slice := flag.Duration("slice", 250*time.Millisecond, "how long a server works before it is the turn of the next")
	rounds := flag.Int("rounds", 3, "how often each has its turn")
	only := flag.String("only", "", "measure only workloads whose name contains this")
	flag.Parse()
	if err := run(os.Stdout, *servers, *slice, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// target is a server to measure.
type target struct {
	name string
	dial func() (net.Conn, error)
}

func run(w io.Writer, servers string, slice time.Duration, rounds int, only string) error {
	srv := zktest.Start()
	defer srv.Close()
	tcp := func(addr string) func() (net.Conn, error) {
		return func() (net.Conn, error) { return net.Dial("tcp", addr) }
	}
	targets := []target{
		{"zktest, TCP", tcp(srv.Addr())},
		{"zktest, memory", func() (net.Conn, error) { return srv.Dial("", "", 0) }},
	}
	if servers != "" {
		first, _, _ := strings.Cut(servers, ",")
		targets = append([]target{{"real", tcp(first)}}, targets...)
	}
	if err := warmUp(targets, min(3*time.Second, 10*slice)); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer t.Flush()
	header(t, targets)
	for _, l := range workloads {
		if !strings.Contains(l.name, only) {
			continue
		}
		for _, at := range loads {
			rates, err := compare(targets, l, at, slice, rounds)
			if err != nil {
				return err
			}
			row(t, l.name, at, rates)
		}
	}
	return nil
}

// warmUp gives a server that was just started the time to compile what it executes often.
func warmUp(targets []target, d time.Duration) error {
	for _, t := range targets {
		for _, l := range workloads {
			if _, _, err := measure(t.dial, l, load{4, 16}, d/time.Duration(len(workloads))); err != nil {
				return fmt.Errorf("warming up %s: %w", t.name, err)
			}
		}
	}
	return nil
}

// compare lets the servers take turns and returns operations per second of each.
func compare(targets []target, l workload, at load, slice time.Duration, rounds int) ([]float64, error) {
	done := make([]int, len(targets))
	spent := make([]time.Duration, len(targets))
	for round := range rounds + 1 { // the first one warms up
		for i := range targets {
			turn := (round + i) % len(targets)
			n, d, err := measure(targets[turn].dial, l, at, slice)
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", l.name, targets[turn].name, err)
			}
			if round > 0 {
				done[turn] += n
				spent[turn] += d
			}
		}
	}
	rates := make([]float64, len(targets))
	for i := range rates {
		rates[i] = float64(done[i]) / spent[i].Seconds()
	}
	return rates, nil
}

func header(w io.Writer, targets []target) {
	fmt.Fprint(w, "operation\tconnections/under way\t")
	for i, t := range targets {
		fmt.Fprintf(w, "%s, ops/s\t", t.name)
		if i > 0 {
			fmt.Fprintf(w, "x %s\t", targets[0].name)
		}
	}
	fmt.Fprintln(w)
}

func row(w io.Writer, name string, at load, rates []float64) {
	fmt.Fprintf(w, "%s\t%d/%d\t", name, at.conns, at.window)
	for i, r := range rates {
		fmt.Fprintf(w, "%.0f\t", r)
		if i > 0 {
			fmt.Fprintf(w, "%.1f\t", r/rates[0])
		}
	}
	fmt.Fprintln(w)
}
