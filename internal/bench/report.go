package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Report is the rows of a run, and what has to be known to judge them.
type Report struct {
	Rows     []Row
	Command  string // that reproduces the run, without secrets
	Machine  string // as of Machine
	Go       string
	Servers  string
	Began    time.Time
	Duration time.Duration // of each peer, scenario and number of clients
	Rounds   int
	// Ended is why the run ended early; empty if it did not.
	Ended string
}

// Write writes report.md, a chart of each scenario, and results.json, into a directory that is there.
func (r Report) Write(dir string) error {
	rows, err := json.MarshalIndent(r.Rows, "", "  ")
	if err != nil {
		return err
	}
	files := map[string]string{"report.md": r.markdown(), "results.json": string(rows) + "\n"}
	for _, s := range Scenarios {
		if rows := r.of(s); len(rows) > 0 {
			files[s.Name+".svg"] = chart(s, rows)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// of are the rows of a scenario that have numbers.
func (r Report) of(s Scenario) (rows []Row) {
	for _, row := range r.Rows {
		if row.Scenario == s.Name && row.Rounds > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

func (r Report) markdown() string {
	var b strings.Builder
	b.WriteString("# Measurements of menagerie bench\n\n")
	if r.Ended != "" {
		fmt.Fprintf(&b, "**The run is not complete: %s.**\n\n", r.Ended)
	}
	fmt.Fprintf(&b, "| | |\n|---|---|\n| command | `%s` |\n| machine | %s |\n| Go | %s |\n| servers | %s |\n| began | %s |\n\n",
		r.Command, r.Machine, r.Go, r.Servers, r.Began.UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(&b, `Times depend on the machine. The requests, and the ratios, hold elsewhere, too. The peers took turns in short slices, in
%d rounds: %v for each peer and number of clients (deep: one queue in each round). `+"`ops/s`"+` is the median of the rounds, `+"`min to max`"+` are the
slowest and the fastest one. A ratio is the median of the ratios within the rounds. p50 and p99 are over all rounds.
Requests are without pings, and without the start and the end of sessions; bytes are those that the clients received.

`, r.Rounds, r.Duration)
	r.losses(&b)
	for _, s := range Scenarios {
		if rows := r.of(s); len(rows) > 0 {
			section(&b, s, rows)
		}
	}
	return b.String()
}

// losses says where the reference is slower than others. The floor is no lock.
func (r Report) losses(b *strings.Builder) {
	var lines []string
	for _, row := range r.Rows {
		where := fmt.Sprintf("%s, %s: %s ", row.Scenario, Clients(row.Clients), row.Peer)
		switch {
		case row.Error != "":
			lines = append(lines, where+"did not finish: "+strings.Join(strings.Fields(row.Error), " "))
		case row.Ratio == 0 || row.Ratio >= 1 || row.Peer == floor.Name():
		case row.RatioMax >= 1:
			lines = append(lines, where+fmt.Sprintf("is about as fast as %s, faster in most rounds (%.2f times)", row.Reference, 1/row.Ratio))
		default:
			lines = append(lines, where+fmt.Sprintf("is %.2f times as fast as %s, faster in every round", 1/row.Ratio, row.Reference))
		}
	}
	b.WriteString("## Who is faster\n\n")
	if len(lines) == 0 {
		b.WriteString("No other lock in this run.\n\n")
		return
	}
	fmt.Fprintf(b, "* %s\n\n", strings.Join(lines, "\n* "))
}

func section(b *strings.Builder, s Scenario, rows []Row) {
	fmt.Fprintf(b, "## %s\n\n%s. An operation is %s. p50 and p99 are the time from %s.\n\n![%s: operations per second](%s.svg)\n\n",
		s.Name, s.Title, s.Op, s.Latency, s.Name, s.Name)
	reference := rows[0].Reference
	fmt.Fprintf(b, "| clients | peer | ops/s | min to max | p50 us | p99 us | requests/op | bytes/op | %s is |\n|---|---|---|---|---|---|---|---|---|\n", reference)
	for _, r := range rows {
		ratio := "-"
		if r.Ratio > 0 && r.Peer != reference {
			ratio = fmt.Sprintf("%.2f x (%.2f to %.2f)", r.Ratio, r.RatioMin, r.RatioMax)
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s to %s | %s | %s | %s | %s | %s |\n", r.Clients, r.Peer, grouped(r.OpsPerS),
			grouped(r.OpsPerSMin), grouped(r.OpsPerSMax), grouped(r.P50), grouped(r.P99), Number(r.RequestsPerOp), grouped(r.BytesInPerOp), ratio)
	}
	b.WriteString("\n")
	if s.Name != Deep {
		return
	}
	b.WriteString("For each waiter:\n\n| waiters | peer | us to queue | us to drain | requests to queue | requests to drain | bytes to queue | bytes to drain |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		d := r.Deep
		fmt.Fprintf(b, "| %d | %s | %s | %s | %s | %s | %s | %s |\n", r.Clients, r.Peer, grouped(d.QueueUS), grouped(d.DrainUS),
			Number(d.QueueRequests), Number(d.DrainRequests), grouped(d.QueueBytesIn), grouped(d.DrainBytesIn))
	}
	b.WriteString("\n")
}

// Number is a number of requests for people.
func Number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

// grouped shows three digits at least, and thousands apart.
func grouped(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
