package top

import (
	"fmt"
	"path"
	"strconv"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
)

// list is the table of locks. It scrolls so that the selected one is shown.
func (f *framer) list() pane {
	columns := []column{
		{name: " ", show: !f.s.Still},
		{name: "PATH", least: 20, show: true, cut: fitMiddle},
		{name: "KIND", drop: 2, show: true},
		{name: "HOLDER", least: 16, drop: 6, show: true, cut: fitMiddle},
		{name: "HELD", right: true, wide: 5, drop: 7, show: true},
		{name: "USUAL", right: true, drop: 3, show: true},
		{name: "X", right: true, wide: 4, drop: 5, show: true},
		{name: "WAIT", right: true, show: true},
		{name: "LONGEST", right: true, drop: 4, show: true},
		{name: "GRANTS/S", right: true, drop: 1, show: true},
		{name: "NOTE"},
	}
	var cells [][]string
	for i, r := range f.rows {
		mark, note := " ", r.note()
		if i == f.at {
			mark = ">"
		}
		columns[len(columns)-1].show = columns[len(columns)-1].show || note != ""
		wait := "-"
		if r.waiters > 0 {
			wait = span(r.longest)
		}
		who, held := r.holding()
		cells = append(cells, []string{mark, tree.Clean(r.Path), r.Kind, who, held, r.usual(), number(r.ratio(), r.ratio() > 0),
			strconv.Itoa(r.waiters), wait, number(r.Grants, r.Queue && r.Grants >= 0), note})
	}
	if len(cells) == 0 {
		return f.section("", 1, []string{f.nothing()})
	}
	lines := table(columns, cells, f.width)
	return pane{4, len(lines), func(n int) []string { return f.window(lines, n) }}
}

// nothing says why the table is empty.
func (f *framer) nothing() string {
	if f.v.Missing {
		return tree.Clean(f.v.Root) + " does not exist"
	}
	text := "nobody holds or waits at " + tree.Clean(f.s.Dir) + " or below it"
	if len(f.v.Denied) > 0 || f.v.Left > 0 {
		text += ", as far as it was read"
	}
	if f.s.Filter != "" {
		text += fmt.Sprintf(" with %q in its path or owner", tree.Clean(f.s.Filter))
	}
	return text
}

// window is the names of the columns and n-1 rows around the selected one.
func (f *framer) window(lines []string, n int) []string {
	p := f.s.Palette
	drawn := []string{p.paint(lines[0], strong)}
	count := n - 1
	first := max(0, min(f.at-count/2, len(f.rows)-count))
	for i := first; i < min(first+count, len(f.rows)); i++ {
		line, styles := lines[i+1], []style{f.rows[i].look()}
		if i == f.at && !f.s.Still {
			line, styles = pad(line, f.width, false), append(styles, chosen)
		}
		drawn = append(drawn, p.paint(line, styles...))
	}
	return drawn
}

// holding is the longest hold.
func (r row) holding() (who, held string) {
	switch {
	case r.holder == nil:
		return "-", "-"
	case r.holder.Time().IsZero():
		held = "-"
	default:
		held = span(r.holder.For)
	}
	who = r.holder.Owned()
	if r.held > 1 {
		who += fmt.Sprintf(" +%d", r.held-1)
	}
	return tree.Clean(who), held
}

func (r row) usual() string {
	if r.Usual.Holds == 0 {
		return "-"
	}
	return span(r.Usual.Median) + "/" + span(r.Usual.P99)
}

func (r row) note() string {
	switch {
	case r.stuck && r.dead:
		return "deadlock, dead?"
	case r.stuck:
		return "deadlock"
	case r.dead:
		return "dead?"
	}
	return ""
}

func (r row) look() style {
	switch {
	case r.stuck || r.dead || r.ratio() > 10:
		return alarm
	case r.Usual.Holds > 0 && r.heldFor() > r.Usual.P99:
		return warn
	}
	return normal
}

// cycles are the deadlocks.
func (f *framer) cycles() pane {
	var texts []string
	for _, c := range f.v.Cycles {
		text := c.Text
		if !c.Certain {
			text = "probably, as a session counts as one owner: " + text
		}
		texts = append(texts, tree.Clean(text))
	}
	return f.section("deadlocks", 2, texts, alarm)
}

// dead are the holders that are probably dead, and what one may do.
func (f *framer) dead() pane {
	var texts []string
	for _, o := range f.v.Objects {
		held := newRow(o).held
		for _, e := range o.Entries {
			if e.State != zksync.Held || !e.Dead {
				continue
			}
			texts = append(texts, tree.Clean(e.Who()+" holds "+o.Path+": "+e.Heard))
			if command := f.release(o, e, held == 1); command != "" {
				texts = append(texts, "  "+command)
			}
		}
	}
	return f.section("probably dead", 3, texts)
}

// release is the command that removes a holder; "" if the view is too old to decide by it, or if it cannot be copied.
func (f *framer) release(o *survey.Object, e *survey.Entry, alone bool) string {
	if !f.current() || !o.Queue {
		return ""
	}
	words := []string{"menagerie", "release", o.Path, "--node", path.Base(e.Node)}
	if alone {
		words = append(words[:3], "--holder")
	}
	return tree.Command(append(words, f.s.Flags...)...)
}

// unread says what the frame does not show.
func (f *framer) unread() pane {
	var texts []string
	if f.v.Outage != "" {
		texts = append(texts, f.v.Outage+": decide nothing by this frame")
	}
	if len(f.v.Denied) > 0 {
		texts = append(texts, tree.Clean(some(f.v.Denied))+" "+tree.Denied)
	}
	if f.v.Left > 0 {
		texts = append(texts, fmt.Sprintf("%d more are not shown: go into a directory, or name one: menagerie top PATH", f.v.Left))
	}
	if r := f.v.Servers; r == nil || len(r.Servers) == 0 {
		texts = append(texts, "which holders are dead is not known: nothing is known of the servers")
	} else if !r.Tells {
		texts = append(texts, "not all servers report which clients they have heard of: allow cons and dump in 4lw.commands.whitelist")
	}
	return f.section("not seen", 2, texts, warn)
}
