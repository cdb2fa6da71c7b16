package top

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
)

// detail is the queue of the selected lock.
func (f *framer) detail() pane {
	if len(f.rows) == 0 {
		return f.section("", 0, nil)
	}
	r := f.rows[f.at]
	heading := f.s.Palette.paint(f.fit(tree.Clean(r.Path+": "+r.Kind+", "+r.Detail)), strong)
	if len(r.Entries) == 0 {
		return pane{1, 1, func(int) []string { return []string{heading} }}
	}
	has := func(f func(*survey.Entry) bool) bool { return slices.ContainsFunc(r.Entries, f) }
	columns := []column{
		{name: "POS", right: true, show: true},
		{name: "KIND", drop: 6, show: has(func(e *survey.Entry) bool { return e.Kind != zksync.KindLock })},
		{name: "PERMITS", right: true, drop: 5, show: has(func(e *survey.Entry) bool { return e.Permits > 0 })},
		{name: "STATE", show: true},
		{name: "FOR", right: true, wide: 5, show: true},
		{name: "WHO", least: 20, show: true, cut: fitMiddle},
		{name: "ID", least: 8, drop: 7, show: has(func(e *survey.Entry) bool { return e.ID != "" })},
		{name: "BEHIND", least: 16, cut: fitMiddle, drop: 4, show: has(func(e *survey.Entry) bool { return e.Behind != "" })},
		{name: "SINCE", drop: 3, show: true},
		{name: "TOKEN", drop: 2, show: has(func(e *survey.Entry) bool { return e.Token != "" })},
		{name: "SESSION", drop: 1, show: true},
	}
	var cells [][]string
	for _, e := range r.Entries {
		since, long := "-", "-"
		if at := e.Time(); !at.IsZero() {
			since, long = f.since(at), span(e.For)
		}
		row := []string{strconv.Itoa(e.Position), string(e.Kind), strconv.FormatInt(e.Permits, 10), string(e.State), long, e.Owned(), tree.Dash(e.ID),
			tree.Dash(e.Behind), since, tree.Dash(e.Token), tree.Dash(e.Session)}
		for i := range row {
			row[i] = tree.Clean(row[i])
		}
		cells = append(cells, row)
	}
	lines := []string{heading}
	for i, line := range table(columns, cells, f.width) {
		if i == 0 {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, f.entry(r.Entries[i-1], line)...)
	}
	return pane{min(3, len(lines)), len(lines), func(n int) []string { return rest(lines, n, f.width) }}
}

// entry is a line of the queue, and what the servers say against it.
func (f *framer) entry(e *survey.Entry, line string) []string {
	st := normal
	if e.Dead || e.Stuck {
		st = alarm
	}
	lines := []string{f.s.Palette.paint(line, st)}
	if e.Heard != "" {
		lines = append(lines, f.s.Palette.paint(f.fit("     "+tree.Clean(e.Heard)), st))
	}
	return lines
}

// since is a time; of today it has no date.
func (f *framer) since(t time.Time) string {
	if f.now.Sub(t).Abs() < 24*time.Hour {
		return t.UTC().Format("15:04:05Z")
	}
	return t.UTC().Format("2006-01-02")
}
