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
		if rows := measured(s, r.Rows); len(rows) > 0 {
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
	b.WriteString(Tables("##", r.Rows, true))
	return b.String()
}
