package top

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// fresh is how old a view may be that is shown as live: it is confirmed every second.
const fresh = 3 * time.Second

// title is the first line: what is shown, and how old it is.
func (f *framer) title() string {
	left := "menagerie top " + tree.Clean(f.s.Dir)
	if f.v != nil && !f.s.Help && !f.v.At.IsZero() {
		left += ", by " + f.s.Order.String()
		if f.s.Reverse {
			left += " reversed"
		}
		if f.s.Filter != "" {
			left += fmt.Sprintf(", with %q", tree.Clean(f.s.Filter))
		}
	}
	age, wrong := f.age()
	if age == "" {
		return f.s.Palette.paint(f.fit(left), strong)
	}
	line := beside(left, gap+age, f.width)
	cut := max(len(line)-len(age), 0)
	st := strong
	if wrong {
		st = alarm
	}
	return f.s.Palette.paint(line[:cut], strong) + f.s.Palette.paint(line[cut:], st)
}

// age says from when the view is.
func (f *framer) age() (text string, wrong bool) {
	if f.v == nil || f.v.At.IsZero() {
		return "", false
	}
	old := f.now.Sub(f.v.At)
	ago := fmt.Sprintf("as of %d s ago", max(old, 0)/time.Second)
	if old >= 2*time.Minute {
		ago = "as of " + wording.Shortly(old) + " ago"
	}
	switch {
	case f.s.Paused:
		return "paused, " + ago, false
	case f.v.Outage != "":
		return ago + "; " + f.v.Outage, true
	case f.s.Still:
		return "at " + f.v.At.UTC().Format("15:04:05Z"), false
	case old > fresh:
		return ago, false
	}
	return "live", false
}

// current reports whether the view is new enough to decide by it.
func (f *framer) current() bool { return f.v != nil && f.v.Outage == "" && !f.s.Paused }

// head answers whether anything is wrong: the worst first.
func (f *framer) head() (lines []string) {
	if f.v == nil || f.v.At.IsZero() {
		reading := "reading " + tree.Clean(f.s.Dir) + " ..."
		if f.v != nil && f.v.Outage != "" {
			reading += " " + f.v.Outage
		}
		return f.wrap(reading)
	}
	add := func(text string, st style) {
		for _, line := range f.wrap(tree.Clean(text)) {
			lines = append(lines, f.s.Palette.paint(line, st))
		}
	}
	for _, text := range f.wrong() {
		add(text, alarm)
	}
	add(f.summary(len(lines) > 0), normal)
	for _, text := range f.findings(servers.Note) {
		add(text, warn)
	}
	return lines
}

// wrong is what is wrong, the worst first.
func (f *framer) wrong() []string {
	all := f.findings(servers.Problem)
	if n := len(f.v.Cycles); n > 0 {
		all = append(all, wording.Plural(int64(n), "deadlock")+": "+some(pathsOf(f.v.Cycles[0])))
	}
	var dead []string
	for _, o := range f.v.Objects {
		for _, e := range o.Entries {
			if e.Dead && e.State == zksync.Held {
				dead = append(dead, o.Path)
			}
		}
	}
	if n := len(dead); n > 0 {
		all = append(all, wording.Count(int64(n), "holder is probably dead", "holders are probably dead")+": "+some(dead))
	}
	return all
}

// pathsOf are the locks of a deadlock.
func pathsOf(c survey.Cycle) (all []string) {
	for _, s := range c.Steps {
		if !slices.Contains(all, s.Path) {
			all = append(all, s.Path)
		}
	}
	return all
}

// some are the first few paths.
func some(paths []string) string {
	const few = 3
	if len(paths) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:few], ", "), len(paths)-few)
	}
	return strings.Join(paths, ", ")
}

func (f *framer) findings(severity string) (all []string) {
	if f.v.Servers == nil {
		return nil
	}
	for _, g := range f.v.Servers.Findings {
		if g.Severity != severity {
			continue
		}
		text := g.Text
		if g.Server != "" && !strings.Contains(text, g.Server) {
			text = g.Server + ": " + text
		}
		if g.Fix != "" {
			text += "; " + g.Fix
		}
		all = append(all, text)
	}
	return all
}

// summary counts the servers and the locks. It says that all is well only if all could be seen.
func (f *framer) summary(wrong bool) string {
	held, waiters := 0, 0
	for _, o := range f.v.Objects {
		r := newRow(o)
		if r.held > 0 {
			held++
		}
		waiters += r.waiters
	}
	locks := wording.Plural(int64(held), "lock") + " held, " + wording.Count(int64(waiters), "waits", "wait")
	known, all, served := f.served()
	text := served + ", " + locks
	switch {
	case wrong || f.v.Outage != "" || f.v.Missing || known && !all:
	case !known:
		return "no deadlock: " + locks + "; " + served
	case len(f.v.Denied) > 0 || f.v.Left > 0:
		text = "all is well as far as it was read: " + text
	default:
		text = "all is well: " + text
	}
	return text
}

// served says how many servers serve, whether all do, and which one leads.
func (f *framer) served() (known, all bool, text string) {
	r := f.v.Servers
	if r == nil || len(r.Servers) == 0 {
		return false, false, "nothing is known of the servers"
	}
	serving, leader, hosts := 0, "", make(map[string]bool)
	for _, s := range r.Servers {
		if s.Serves {
			serving++
		}
		host, _, _ := net.SplitHostPort(s.Addr)
		hosts[host] = true
		if s.Mode == "leader" {
			leader = s.Addr
		}
	}
	if len(hosts) == len(r.Servers) { // otherwise only the ports differ
		leader, _, _ = net.SplitHostPort(leader)
	}
	text = fmt.Sprintf("%d of %s", serving, wording.Plural(int64(len(r.Servers)), "server"))
	if leader != "" {
		text += ", leader " + leader
	}
	return true, serving == len(r.Servers), text
}

// footer is the last line: the filter while it is typed, a new message, or the keys.
func (f *framer) footer() string {
	switch {
	case f.s.Editing:
		return f.fit("filter by a part of a path or an owner: " + tree.Clean(f.s.Filter) + "_")
	case f.s.Note != "" && (f.v == nil || f.v.Outage != "" || f.now.Sub(f.s.NoteAt) < 10*time.Second):
		return f.fit(tree.Clean(f.s.Note))
	}
	line := keys[0]
	for _, key := range keys[1:] {
		if f.width == 0 || len(line+gap+key) <= f.width {
			line += gap + key
		}
	}
	return f.fit(line)
}

// keys are hinted at as far as there is room.
var keys = []string{"q quit", "? help", "s sort", "r reverse", "/ filter", "p pause", "enter below", "backspace above"}

var help = []string{
	"",
	"up down j k     select; also pgup, pgdn, home, end",
	"enter right     show only the directory of the selected lock",
	"backspace left  show the directory above",
	"s               sort by waiters, held, ratio, longest wait, grants, path",
	"r               reverse the order",
	"/               filter by a part of a path or of an owner; enter ends it, esc clears it",
	"p               pause: the frame stays as it is",
	"?               this help; any key ends it",
	"q               quit; also Ctrl-C",
	"",
	"HELD beside USUAL: the median and the 99th percentile of the holds that were seen to begin and to end here. X is HELD by that median.",
	"A line is yellow if the lock is held for longer than the 99th percentile, and red if it is held ten times the median, if a holder is probably dead, or in a deadlock.",
	"GRANTS/S counts entries that have come and gone since the look before.",
	"top changes nothing. What to do is printed as a command to copy.",
}
