package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/bench"
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
	fmt.Fprintf(&b, "Measured on %s: %s, which ran clients and servers together; %s, %s. ",
		r.began.UTC().Format("2006-01-02"), bench.Machine(), r.server, goVersion())
	fmt.Fprintf(&b, "Rounds: %d, with %v for each peer, scenario and number of clients; the run took %v.\n\n", r.rounds, r.duration, r.took.Round(time.Second))
	for _, what := range r.field.what {
		fmt.Fprintf(&b, "* %s\n", what)
	}
	for _, line := range r.field.absent {
		fmt.Fprintf(&b, "* left out: %s\n", firstLine(line))
	}
	if len(r.field.what)+len(r.field.absent) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(bench.Tables("##", r.rows, false))
	return b.String()
}
