package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/wording"
)

// free is the detail of a lock without contenders.
const free = "nobody holds or waits"

// maxColumns is how wide ls prints on a terminal without -l.
const maxColumns = 100

// writeView prints a view for people.
func writeView(w *bytes.Buffer, v *tree.View, o lsOptions, now time.Time) {
	t := v.Target
	switch {
	case t.Kind == "empty":
		writeLine(w, o.whole, "nobody holds or waits for "+t.Path+"; "+t.Detail)
	case t.Kind == "lock" && len(t.Entries) == 0 && t.Detail != free:
		writeLine(w, o.whole, free+" for "+t.Path+"; "+t.Detail)
	case t.Kind == "lock" && len(t.Entries) == 0:
		writeLine(w, o.whole, free+" for "+t.Path)
	case t.State == "directory" && len(v.Below) > 0 && !o.recurse:
	case t.Kind == "lock" || t.Kind == "rwlock": // the rows say it all
	default:
		writeLine(w, o.whole, headline(t))
	}
	writeEntries(w, t, o, now)
	if len(v.Below) == 0 {
		return
	}
	if t.State != "directory" {
		fmt.Fprintf(w, "also below it:\n")
	}
	if o.long {
		for _, b := range v.Below {
			writeLine(w, true, headline(b))
			writeEntries(w, b, o, now)
		}
		return
	}
	rows := [][]string{{"PATH", "KIND", "STATE"}}
	for _, b := range v.Below {
		rows = append(rows, []string{b.Path, b.Kind, b.Detail})
	}
	writeTable(w, rows, o.columns(), flexible{0, 40, cutMiddle}, flexible{2, narrowest, cut})
}

// printView prints the view for programs.
func printView(w *bytes.Buffer, v *tree.View, o lsOptions) error {
	var all any
	switch {
	case v.Target == nil:
		all = []tree.Object{}
	case v.Target.Queue && !o.recurse:
		all = v.Target.Entries
	case v.Target.State == "directory" && !o.recurse:
		all = append([]*tree.Object{}, v.Below...)
	default:
		all = append([]*tree.Object{v.Target}, v.Below...)
	}
	return writeJSON(w, all, !o.watch)
}

func headline(o *tree.Object) string { return o.Path + ": " + o.Kind + ", " + o.Detail }

// columns is how wide the lines may be; 0 for any width.
func (o lsOptions) columns() int {
	if o.whole {
		return 0
	}
	return maxColumns
}

func writeLine(w *bytes.Buffer, whole bool, line string) {
	line = tree.Clean(line)
	if !whole {
		line = cut(line, maxColumns)
	}
	fmt.Fprintln(w, line)
}

// writeEntries prints the entries, in the columns that are not empty.
func writeEntries(w *bytes.Buffer, o *tree.Object, how lsOptions, now time.Time) {
	if len(o.Entries) == 0 {
		return
	}
	columns := []struct {
		name string
		show bool
		cell func(tree.Row) string
	}{
		{"POS", true, func(r tree.Row) string { return strconv.Itoa(r.Position) }},
		{"KIND", true, func(r tree.Row) string { return string(r.Kind) }},
		{"STATE", true, func(r tree.Row) string { return string(r.State) }},
		{"PERMITS", some(o, func(r tree.Row) bool { return r.Permits > 0 }), func(r tree.Row) string { return strconv.FormatInt(r.Permits, 10) }},
		{"ID", some(o, func(r tree.Row) bool { return r.ID != "" }), func(r tree.Row) string { return r.ID }},
		{"OWNER", true, func(r tree.Row) string { return r.Owner.String() }},
		{"SINCE", true, func(r tree.Row) string { return age(r.Time(), now, how.long) }},
		{"SESSION", how.long, func(r tree.Row) string { return tree.Dash(r.Session) }},
		{"TOKEN", some(o, func(r tree.Row) bool { return r.Token != "" }), func(r tree.Row) string { return tree.Dash(r.Token) }},
		{"NODE", how.long, func(r tree.Row) string { return r.Node }},
	}
	rows := make([][]string, 1+len(o.Entries))
	owner, id := -1, -1
	for _, c := range columns {
		if !c.show {
			continue
		}
		switch c.name {
		case "OWNER":
			owner = len(rows[0])
		case "ID":
			id = len(rows[0])
		}
		rows[0] = append(rows[0], c.name)
		for i, r := range o.Entries {
			rows[i+1] = append(rows[i+1], c.cell(r))
		}
	}
	writeTable(w, rows, how.columns(), flexible{id, narrowest, cut}, flexible{owner, narrowest, cut})
	for _, r := range o.Entries {
		if r.Dead {
			writeLine(w, how.whole, r.Who()+" is probably dead: "+r.Heard)
		}
	}
}

func some(o *tree.Object, f func(tree.Row) bool) bool {
	for _, r := range o.Entries {
		if f(r) {
			return true
		}
	}
	return false
}

// flexible names a column that may be cut, or -1, and to how many characters.
type flexible struct {
	column, narrowest int
	cut               func(string, int) string
}

// narrowest is the least width of a column that may be cut far.
const narrowest = 8

// writeTable prints rows in columns. If they are wider than limit, it cuts the flexible columns, the
// first one first. A limit of 0 is no limit.
func writeTable(w *bytes.Buffer, rows [][]string, limit int, flex ...flexible) {
	const gap = 2
	widths := make([]int, len(rows[0]))
	cuts := make(map[int]func(string, int) string)
	total := -gap
	for c := range widths {
		for _, r := range rows {
			r[c] = tree.Clean(r[c])
			widths[c] = max(widths[c], utf8.RuneCountInString(r[c]))
		}
		total += widths[c] + gap
	}
	for _, f := range flex {
		if limit == 0 || total <= limit || f.column < 0 {
			continue
		}
		less := min(total-limit, max(0, widths[f.column]-f.narrowest))
		widths[f.column] -= less
		total -= less
		cuts[f.column] = f.cut
	}
	for _, r := range rows {
		var line strings.Builder
		for c, cell := range r {
			if fit := cuts[c]; fit != nil {
				cell = fit(cell, widths[c])
			}
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell)+gap))
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// cut shortens a text to n characters, and marks that with "...".
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(0, n-3)]) + "..."
}

// cutMiddle cuts the middle of a path, because its end is the most useful.
func cutMiddle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := max(0, n-3) / 3
	return string(r[:head]) + "..." + string(r[len(r)-max(0, n-3-head):])
}

// age is a time and how long ago that is. A time of today has no date, unless long is set.
func age(t, now time.Time, long bool) string {
	if t.IsZero() {
		return "-"
	}
	t = t.UTC()
	layout := "2006-01-02"
	switch {
	case long:
		layout = time.RFC3339
	case now.Sub(t).Abs() < 24*time.Hour:
		layout = "15:04:05Z"
	}
	return fmt.Sprintf("%s (%s)", t.Format(layout), wording.Shortly(now.Sub(t)))
}
