package bench

import (
	"fmt"
	"strings"
)

// Tables says in Markdown where the reference is slower than others, and what each scenario has measured. Headings begin with
// level, such as "##". With charts each scenario shows its own, a file beside the page.
func Tables(level string, rows []Row, charts bool) string {
	var b strings.Builder
	losses(&b, level, rows)
	for _, s := range Scenarios {
		rows := measured(s, rows)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s %s\n\n%s. An operation is %s. p50 and p99 are the time from %s.\n\n", level, s.Name, s.Title, s.Op, s.Latency)
		if charts {
			fmt.Fprintf(&b, "![%s: operations per second](%s.svg)\n\n", s.Name, s.Name)
		}
		section(&b, rows)
		if s.Drains {
			deepSection(&b, rows)
		}
	}
	return b.String()
}

// measured are the rows of a scenario that have numbers.
func measured(s Scenario, all []Row) (rows []Row) {
	for _, row := range all {
		if row.Scenario == s.Name && row.Rounds > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// losses says where others are faster than the reference, or did not finish. The floor is no lock.
func losses(b *strings.Builder, level string, rows []Row) {
	if len(rows) == 0 {
		return
	}
	var lines []string
	for _, row := range rows {
		where := fmt.Sprintf("* %s, %s: %s ", row.Scenario, Clients(row.Clients), row.Peer)
		faster := fmt.Sprintf("makes %.2f times as many operations", 1/row.Ratio)
		switch {
		case row.Error != "":
			lines = append(lines, where+"did not finish: "+strings.Join(strings.Fields(row.Error), " "))
		case row.Ratio == 0 || row.Ratio >= 1 || strings.HasPrefix(row.Peer, floor.Name()):
		case row.RatioMax >= 1:
			lines = append(lines, where+faster+" (in the median; not in every round)")
		default:
			lines = append(lines, where+faster)
		}
	}
	if len(lines) == 0 {
		lines = []string{"In no scenario of this run another lock was faster."}
	}
	fmt.Fprintf(b, "%s Where %s loses\n\n%s\n\n", level, rows[0].Reference, strings.Join(lines, "\n"))
}

func section(b *strings.Builder, rows []Row) {
	fmt.Fprintf(b, "| clients | peer | ops/s | min to max | p50 us | p99 us | requests/op | bytes/op | CPU us/op | %s is |\n|---|---|---|---|---|---|---|---|---|---|\n", rows[0].Reference)
	for _, r := range rows {
		ratio := "-"
		if r.Ratio > 0 && r.Peer != r.Reference {
			ratio = fmt.Sprintf("%s x (%s to %s)", grouped(r.Ratio), grouped(r.RatioMin), grouped(r.RatioMax))
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s to %s | %s | %s | %s | %s | %s | %s |\n", r.Clients, r.Peer, grouped(r.OpsPerS),
			grouped(r.OpsPerSMin), grouped(r.OpsPerSMax), grouped(r.P50), grouped(r.P99), Number(r.RequestsPerOp), size(r.BytesInPerOp), size(r.ClientCPU), ratio)
	}
	b.WriteString("\n")
}

// deepSection shows the two halves of a deep queue.
func deepSection(b *strings.Builder, rows []Row) {
	b.WriteString("For each waiter:\n\n| waiters | peer | us to queue | us to drain | us for both | requests to queue | requests to drain | bytes to queue | bytes to drain |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		d := r.Deep
		fmt.Fprintf(b, "| %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Clients, r.Peer, grouped(d.QueueUS), grouped(d.DrainUS), grouped(d.QueueUS+d.DrainUS),
			Number(d.QueueRequests), Number(d.DrainRequests), size(d.QueueBytesIn), size(d.DrainBytesIn))
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

// size is a number of bytes, for people.
func size(v float64) string {
	if v < 0 { // Uncounted
		return "-"
	}
	return grouped(v)
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
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}
