package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/bench"
)

// report is what a run has found. Saved as JSON it is what the page is made of.
type report struct {
	Began    time.Time
	Took     time.Duration
	Machine  string
	Server   string
	Go       string
	Rounds   int
	Duration time.Duration
	Peers    []string // which software the rivals are
	Absent   []string // who is not there
	Rows     []bench.Row
}

// about says how the run was.
func (r *report) about() string {
	return fmt.Sprintf("Measured on %s: %s, which ran clients and servers together; %s, %s. Rounds: %d, with %v for each peer, scenario and number of clients; the run took %v.",
		r.Began.UTC().Format("2006-01-02"), r.Machine, r.Server, r.Go, r.Rounds, r.Duration, r.Took.Round(time.Second))
}

// software is which versions took part, in one paragraph.
func (r *report) software() string {
	all := slices.Clone(r.Peers)
	for _, line := range r.Absent {
		all = append(all, "left out: "+firstLine(line))
	}
	return strings.Join(all, "; ")
}

// markdown is for the terminal, of a run that is not saved.
func (r *report) markdown() string {
	return r.about() + "\n\n" + r.software() + "\n\n" + bench.Tables("##", r.Rows, false)
}

// mainRun is the name of the run that the page begins with. Others follow in a table each.
const mainRun = "one-server"

// save writes the run for the page.
func (r *report) save(dir, name string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644)
}

func load(file string) (*report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// groups are the tables and charts of the main run. The last has all scenarios that no other names.
var groups = []struct {
	name, title string
	scenarios   []string
}{
	{"locks", "Locks of several processes", []string{bench.Uncontended, bench.Async, bench.Contended, bench.RWMutex, bench.Readers, bench.Semaphore, bench.Election}},
	{"many", "Many waiters, many locks", []string{bench.Deep, "crowd", "fleet", "many"}},
	{"local", "One process", []string{bench.Local, bench.Relock, bench.SharedReaders}},
	{"other", "Meeting points and values", nil},
}

func groupOf(scenario string) int {
	for i, g := range groups {
		if slices.Contains(g.scenarios, scenario) {
			return i
		}
	}
	return len(groups) - 1
}

// render writes the parts of the page, and its charts into the folder images beside it, from the saved runs.
func render(page, dir string) error {
	r, err := load(filepath.Join(dir, mainRun+".json"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	images := filepath.Join(filepath.Dir(page), "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return err
	}
	// Deep queues of few peers were measured last.
	names := bench.ScenarioNames()
	slices.SortStableFunc(r.Rows, func(a, b bench.Row) int {
		return cmp.Or(slices.Index(names, a.Scenario)-slices.Index(names, b.Scenario), a.Clients-b.Clients)
	})
	var tables strings.Builder
	for i, g := range groups {
		var rows []bench.Row
		for _, row := range r.Rows {
			if groupOf(row.Scenario) == i {
				rows = append(rows, row)
			}
		}
		if len(rows) == 0 {
			continue
		}
		chart := "bench-" + g.name + ".svg"
		fmt.Fprintf(&tables, "### %s\n\n![%s](images/%s)\n\n%s\n%s\n\n", g.title, g.title, chart, bench.Compact(rows), described(rows))
		if err := os.WriteFile(filepath.Join(images, chart), []byte(bench.RatioChart(g.title, rows)), 0o644); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json")) // sorted
	if err != nil {
		return err
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if name == mainRun {
			continue
		}
		other, err := load(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&tables, "### %s\n\n%s\n\n%s\n", strings.ReplaceAll(name, "-", " "), other.about(), bench.Matrix(other.Rows))
	}
	written, err := replaced(string(text), map[string]string{
		"losses": bench.Losses(r.Rows),
		"tables": r.about() + " The rivals: " + r.software() + ".\n\n" + tables.String(),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(written), 0o644)
}

// described says what the scenarios of the rows are.
func described(rows []bench.Row) string {
	var all []string
	for _, s := range bench.Scenarios {
		if slices.ContainsFunc(rows, func(r bench.Row) bool { return r.Scenario == s.Name }) {
			all = append(all, fmt.Sprintf("**%s**: %s. An operation is %s; its latency is from %s.", s.Name, s.Title, s.Op, s.Latency))
		}
	}
	return strings.Join(all, " ")
}

// replaced is the page with these parts between their markers. What stands outside stays.
func replaced(page string, parts map[string]string) (string, error) {
	for part, content := range parts {
		begin, end := "<!-- "+part+": written by bench/rivals -->", "<!-- end of "+part+" -->"
		before, rest, ok := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return "", fmt.Errorf("the page lacks the lines %q and %q", begin, end)
		}
		page = before + begin + "\n\n" + strings.TrimSpace(content) + "\n\n" + end + after
	}
	return page, nil
}
