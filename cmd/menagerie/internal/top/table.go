package top

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// column is a column of a table.
type column struct {
	name  string
	right bool
	wide  int // at least, so that the table does not move when numbers grow
	least int // a column that may be cut: to so many characters
	drop  int // columns are left out in this order if the terminal is narrow; 0 never
	show  bool
	cut   func(string, int) string // nil is fit
}

// gap is between two columns.
const gap = "  "

// table lays rows out in lines of at most limit columns, the first of which has the names. Columns that do not fit are left
// out. A limit of 0 is none.
func table(columns []column, cells [][]string, limit int) []string {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = max(len(c.name), c.wide)
		for _, row := range cells {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
	}
	columns = append([]column{}, columns...)
	for limit > 0 && leastWidth(columns, widths) > limit && dropOne(columns) {
	}
	shrink(columns, widths, limit)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	var lines []string
	for _, row := range append([][]string{names}, cells...) {
		line := ""
		for i, c := range columns {
			if !c.show {
				continue
			}
			if line != "" {
				line += gap
			}
			cut := c.cut
			if cut == nil {
				cut = fit
			}
			line += pad(cut(row[i], widths[i]), widths[i], c.right)
		}
		if limit > 0 {
			line = fit(line, limit)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// leastWidth is how wide the table is when all is cut that may be cut.
func leastWidth(columns []column, widths []int) int {
	total := -len(gap)
	for i, c := range columns {
		switch {
		case !c.show:
		case c.least > 0:
			total += min(c.least, widths[i]) + len(gap)
		default:
			total += widths[i] + len(gap)
		}
	}
	return total
}

// dropOne leaves out the next column.
func dropOne(columns []column) bool {
	next := -1
	for i, c := range columns {
		if c.show && c.drop > 0 && (next < 0 || c.drop < columns[next].drop) {
			next = i
		}
	}
	if next >= 0 {
		columns[next].show = false
	}
	return next >= 0
}

// shrink cuts the columns that may be cut, the last one first.
func shrink(columns []column, widths []int, limit int) {
	total := -len(gap)
	for i, c := range columns {
		if c.show {
			total += widths[i] + len(gap)
		}
	}
	for i := len(columns) - 1; i >= 0 && limit > 0; i-- {
		if c := columns[i]; c.show && c.least > 0 && total > limit {
			less := min(total-limit, max(0, widths[i]-c.least))
			widths[i] -= less
			total -= less
		}
	}
}
