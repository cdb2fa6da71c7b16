package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/bench"
)

// The markers stand on lines of their own. What is between them is written by this program.
const (
	begin = "<!-- results: written by bench/rivals -->"
	end   = "<!-- end of the results -->"
)

// parted cuts a page at the markers.
func parted(page string) (before, after string, err error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", fmt.Errorf("the page lacks the lines %q and %q", begin, end)
	}
	return before, after, nil
}

func checkPage(name string) error {
	page, err := os.ReadFile(name)
	if err == nil {
		_, _, err = parted(string(page))
	}
	return err
}

func writePage(name, results string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, after, err := parted(string(page))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(before+begin+"\n\n"+results+end+after), 0o644)
}

// report is what a run has found.
type report struct {
	field    *field
	rows     []bench.Row
	server   string
	rounds   int
	duration time.Duration
	began    time.Time
	took     time.Duration
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s: %s, which ran clients and servers together; %s with one server and its log synced, %s. ",
		r.began.UTC().Format("2006-01-02"), bench.Machine(), r.server, goVersion())
	fmt.Fprintf(&b, "%d %s, %v for each peer, scenario and number of clients; the run took %v.\n\n", r.rounds, plural("round", r.rounds), r.duration, r.took.Round(time.Second))
	for _, what := range r.field.what {
		fmt.Fprintf(&b, "* %s\n", what)
	}
	for _, line := range r.field.absent {
		fmt.Fprintf(&b, "* left out: %s\n", firstLine(line))
	}
	b.WriteString("\n")
	r.losses(&b)
	for _, s := range bench.Scenarios {
		if rows := r.of(s.Name); len(rows) > 0 {
			section(&b, s, rows)
		}
	}
	return b.String()
}

func (r *report) of(scenario string) (rows []bench.Row) {
	for _, row := range r.rows {
		if row.Scenario == scenario {
			rows = append(rows, row)
		}
	}
	return rows
}

// losses says where others are faster, or did not finish. The floor is no lock.
func (r *report) losses(b *strings.Builder) {
	fmt.Fprintf(b, "### Where we lose\n\n")
	none := true
	for _, row := range r.rows {
		at := fmt.Sprintf("* %s, %d %s: ", row.Scenario, row.Clients, plural("client", row.Clients))
		switch {
		case row.Error != "":
			fmt.Fprintf(b, "%s%s did not finish: %s\n", at, row.Peer, strings.Join(strings.Fields(row.Error), " "))
		case row.Peer == "floor" || row.Ratio == 0 || row.Ratio >= 1:
			continue
		case row.RatioMax >= 1:
			fmt.Fprintf(b, "%s%s makes %.2f times as many operations (in the median; not in every round)\n", at, row.Peer, 1/row.Ratio)
		default:
			fmt.Fprintf(b, "%s%s makes %.2f times as many operations\n", at, row.Peer, 1/row.Ratio)
		}
		none = false
	}
	if none {
		b.WriteString("In no scenario of this run another lock was faster.\n")
	}
	b.WriteString("\n")
}

func section(b *strings.Builder, s bench.Scenario, rows []bench.Row) {
	fmt.Fprintf(b, "### %s\n\n%s. An operation is %s. p50 and p99 are the time from %s.\n\n", s.Name, s.Title, s.Op, s.Latency)
	b.WriteString("| clients | peer | ops/s | lowest to highest | p50 us | p99 us | requests/op | menagerie is |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.Error != "" {
			fmt.Fprintf(b, "| %d | %s | did not finish | | | | | |\n", r.Clients, r.Peer)
			continue
		}
		ratio := ""
		if r.Ratio > 0 && r.Peer != r.Reference {
			ratio = fmt.Sprintf("%s x (%s to %s)", number(r.Ratio), number(r.RatioMin), number(r.RatioMax))
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s to %s | %s | %s | %s | %s |\n", r.Clients, r.Peer, number(r.OpsPerS), number(r.OpsPerSMin),
			number(r.OpsPerSMax), number(r.P50), number(r.P99), bench.Number(r.RequestsPerOp), ratio)
	}
	b.WriteString("\n")
	if s.Name == bench.Deep {
		deep(b, rows)
	}
}

// deep shows the two halves of a deep queue.
func deep(b *strings.Builder, rows []bench.Row) {
	b.WriteString("For each waiter:\n\n| waiters | peer | us to queue | us to drain | requests to queue | requests to drain | bytes to queue | bytes to drain |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		d := r.Deep
		if d == nil {
			continue
		}
		queue, drain := number(d.QueueBytesIn), number(d.DrainBytesIn)
		if d.QueueBytesIn <= 0 { // nobody has counted them
			queue, drain = "-", "-"
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s | %s | %s | %s | %s |\n", r.Clients, r.Peer, number(d.QueueUS), number(d.DrainUS),
			bench.Number(d.QueueRequests), bench.Number(d.DrainRequests), queue, drain)
	}
	b.WriteString("\n")
}
