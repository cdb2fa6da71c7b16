package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Losses lists where others are faster than the reference: a line for each peer. The floor is no lock.
func Losses(rows []Row) string {
	var names []string
	where := map[string][]string{}
	for _, r := range rows {
		at := fmt.Sprintf("%s with %s", r.Scenario, Clients(r.Clients))
		switch {
		case r.Error != "":
			at += ": did not finish: " + strings.Join(strings.Fields(r.Error), " ")
		case r.Ratio == 0 || r.Ratio >= 1 || r.Peer == floor.Name():
			continue
		case r.RatioMax >= 1:
			at += fmt.Sprintf(" %.2f x, not in every round", 1/r.Ratio)
		default:
			at += fmt.Sprintf(" %.2f x", 1/r.Ratio)
		}
		if where[r.Peer] == nil {
			names = append(names, r.Peer)
		}
		where[r.Peer] = append(where[r.Peer], at)
	}
	if len(names) == 0 {
		return "In no scenario another lock was faster.\n"
	}
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "* **%s**: %s\n", name, strings.Join(where[name], "; "))
	}
	return b.String()
}

// Compact is one table of all rows that have numbers: a line for each scenario and number of clients, in which each peer has a line of its
// cells. In scenarios that drain a queue, requests and bytes are to queue + to drain.
func Compact(rows []Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| scenario | clients | peer | ops/s (min to max) | p50 us | p99 us | requests | bytes | CPU us | %s is (min to max) |\n|---|---|---|---|---|---|---|---|---|---|\n", rows[0].Reference)
	for len(rows) > 0 {
		first, cells := rows[0], make([][]string, 8)
		for len(rows) > 0 && rows[0].Scenario == first.Scenario && rows[0].Clients == first.Clients {
			for i, cell := range rows[0].cells() {
				cells[i] = append(cells[i], cell)
			}
			rows = rows[1:]
		}
		fmt.Fprintf(&b, "| %s | %d |", first.Scenario, first.Clients)
		for _, c := range cells {
			// A cell that breaks a line itself would shift the lines below it.
			fmt.Fprintf(&b, " %s |", strings.ReplaceAll(strings.Join(c, "<br>"), " ", "\u00a0"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cells are the row in a table, from the peer on.
func (r Row) cells() []string {
	if r.Rounds == 0 {
		return []string{r.Peer, "-", "-", "-", "-", "-", "-", "-"}
	}
	requests, bytes := r.traffic()
	return []string{r.Peer, fmt.Sprintf("%s (%s to %s)", grouped(r.OpsPerS), grouped(r.OpsPerSMin), grouped(r.OpsPerSMax)), grouped(r.P50), grouped(r.P99), requests, bytes, size(r.ClientCPU), r.ratio()}
}

// Matrix is a table with a line for each scenario and number of clients, in which each other peer has a column.
func Matrix(rows []Row) string {
	var peers []string
	for _, r := range rows {
		if r.Peer != r.Reference && !slices.Contains(peers, r.Peer) {
			peers = append(peers, r.Peer)
		}
	}
	var b strings.Builder
	b.WriteString("| scenario | clients | ops/s (min to max) | p50 us | p99 us | requests | bytes |")
	for _, p := range peers {
		fmt.Fprintf(&b, " x %s |", p)
	}
	b.WriteString("\n|---|---|---|---|---|---|---|" + strings.Repeat("---|", len(peers)) + "\n")
	for _, r := range rows {
		if r.Peer != r.Reference || r.Rounds == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %s |", r.Scenario, r.Clients, strings.Join(r.cells()[1:6], " | "))
		for _, p := range peers {
			i := slices.IndexFunc(rows, func(o Row) bool {
				return o.Peer == p && o.Scenario == r.Scenario && o.Clients == r.Clients && o.Rounds > 0
			})
			cell := "-"
			if i >= 0 {
				cell = rows[i].ratio()
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// traffic is requests and bytes of an operation, for people.
func (r Row) traffic() (requests, bytes string) {
	if d := r.Deep; d != nil && d.QueueBytesIn >= 0 {
		bytes = size(d.QueueBytesIn) + " + " + size(d.DrainBytesIn)
	} else {
		bytes = size(r.BytesInPerOp)
	}
	if d := r.Deep; d != nil && d.QueueRequests != nil {
		return Number(d.QueueRequests) + " + " + Number(d.DrainRequests), bytes
	}
	return Number(r.RequestsPerOp), bytes
}

// ratio is how many times as fast the reference is, for people.
func (r Row) ratio() string {
	if r.Ratio == 0 || r.Peer == r.Reference {
		return "-"
	}
	return fmt.Sprintf("%s x (%s to %s)", grouped(r.Ratio), grouped(r.RatioMin), grouped(r.RatioMax))
}
