package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/go-menagerie/menagerie/bench"
)

func printBench(w io.Writer, rows []bench.Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "scenario\tclients\tpeer\tops/s\tp50 us\tp99 us\trequests/op\tmin\tmax\t%s is\t\n", rows[0].Reference)
	deep := false
	for _, r := range rows {
		if r.Error != "" {
			fmt.Fprintf(t, "%s\t%d\t%s\tfailed\t\t\t\t\t\t\t\n", r.Scenario, r.Clients, r.Peer)
			continue
		}
		ratio := "-"
		if r.Ratio > 0 && r.Peer != r.Reference {
			ratio = fmt.Sprintf("%.2f x", r.Ratio)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%.0f\t%s\t%s\t%s\t%.0f\t%.0f\t%s\t\n", r.Scenario, r.Clients, r.Peer, r.OpsPerS,
			us(r.P50), us(r.P99), bench.Number(r.RequestsPerOp), r.OpsPerSMin, r.OpsPerSMax, ratio)
		deep = deep || r.Deep != nil
	}
	if deep {
		fmt.Fprint(t, "\neach waiter\tclients\tpeer\tus to queue\tto drain\tboth\trequests to queue\tto drain\tbytes to queue\tto drain\t\n")
	}
	for _, r := range rows {
		if d := r.Deep; d != nil {
			fmt.Fprintf(t, "%s\t%d\t%s\t%.0f\t%.0f\t%.0f\t%s\t%s\t%.0f\t%.0f\t\n", r.Scenario, r.Clients, r.Peer, d.QueueUS, d.DrainUS, d.QueueUS+d.DrainUS,
				bench.Number(d.QueueRequests), bench.Number(d.DrainRequests), d.QueueBytesIn, d.DrainBytesIn)
		}
	}
	return outputError(t.Flush())
}

// us shows microseconds. Those of local operations are fractions.
func us(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func printScenarios(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SCENARIO\tCLIENTS\tPEERS\tWHAT")
	for _, s := range bench.Scenarios {
		var peers []string
		for _, p := range bench.Peers() {
			if p.Knows(s.Name) {
				peers = append(peers, p.Name())
			}
		}
		clients := countList(s.Clients)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, &clients, strings.Join(peers, ","), s.Title)
	}
	return outputError(t.Flush())
}
