package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/internal/wording"
)

// roomy is from how many lines on a frame has empty lines between its panes.
const roomy = 24

// framer lays out one frame.
type framer struct {
	v     *survey.View // nil before the first one
	s     State
	width int // 0 is no limit
	now   time.Time
	rows  []row
	at    int // the selected row
}

// pane is a part of a frame.
type pane struct {
	least int // lines; with fewer it is left out
	want  int
	draw  func(lines int) []string
}

// Frame is what a terminal of this size shows. A height of 0 is as high as needed, a width of 0 as wide.
func Frame(v *survey.View, s State, width, height int, now time.Time) string {
	f := &framer{v: v, s: s, width: width, now: now, rows: s.rows(v)}
	f.at = s.selected(f.rows)
	lines := []string{f.title()}
	footer := !s.Still && (height == 0 || height >= 5)
	rest := height - len(lines)
	if footer {
		rest--
	}
	for _, p := range f.share(f.panes(height == 0 || height >= roomy), rest, height == 0) {
		lines = append(lines, p...)
	}
	if footer {
		for len(lines) < height-1 {
			lines = append(lines, "")
		}
		lines = append(lines, f.footer())
	}
	if height > 0 {
		lines = lines[:min(len(lines), height)]
	}
	return strings.Join(lines, "\n")
}

// panes are the parts of the frame in their order.
func (f *framer) panes(spaced bool) []pane {
	if f.s.Help {
		return []pane{f.section("", 1, help)}
	}
	head := pane{1, len(f.head()), func(n int) []string { return rest(f.head(), n, f.width) }}
	if f.v == nil || f.v.At.IsZero() {
		return []pane{head}
	}
	blank := 0
	if spaced {
		blank = 1
	}
	list := f.list()
	all := []pane{head, {min(4, list.want), list.want, list.draw}, f.detail(), f.cycles(), f.dead(), f.unread()}
	for i := range all[1:] {
		if p := &all[1+i]; p.want > 0 && blank > 0 {
			draw := p.draw
			p.want, p.least = p.want+blank, p.least+blank
			p.draw = func(n int) []string { return append([]string{""}, draw(n-1)...) }
		}
	}
	return all
}

// need is the order in which panes get their least height, and share the one in which they get a line more: the table twice.
var (
	need  = []int{0, 1, 3, 4, 5, 2}
	turns = []int{1, 2, 3, 4, 0, 1, 5}
)

// share draws the panes into rest lines.
func (f *framer) share(panes []pane, rest int, unlimited bool) (drawn [][]string) {
	got := make([]int, len(panes))
	give := func(i, n int) {
		got[i] += n
		rest -= n
	}
	for _, i := range need {
		switch {
		case i >= len(panes):
		case unlimited:
			got[i] = panes[i].want
		case i <= 1: // a part of them is better than nothing
			give(i, max(0, min(panes[i].least, rest)))
		case panes[i].least <= rest:
			give(i, panes[i].least)
		}
	}
	for more := !unlimited; more && rest > 0; {
		more = false
		for _, i := range turns {
			if i < len(panes) && rest > 0 && 0 < got[i] && got[i] < panes[i].want {
				give(i, 1)
				more = true
			}
		}
	}
	for i, p := range panes {
		if got[i] > 0 {
			drawn = append(drawn, p.draw(got[i]))
		}
	}
	return drawn
}

// section is a pane of texts, which are wrapped.
func (f *framer) section(name string, least int, texts []string, styles ...style) pane {
	var lines []string
	for _, text := range texts {
		for _, line := range f.wrap(text) {
			lines = append(lines, f.s.Palette.paint(line, styles...))
		}
	}
	if name != "" && len(lines) > 0 {
		lines = append([]string{f.s.Palette.paint(f.fit(name), strong)}, lines...)
	}
	return pane{min(least, len(lines)), len(lines), func(n int) []string { return rest(lines, n, f.width) }}
}

// rest is the first n lines, the last of which says how many are left out.
func rest(lines []string, n, width int) []string {
	if len(lines) <= n || n == 0 {
		return lines[:min(n, len(lines))]
	}
	if n == 1 {
		return []string{beside(lines[0], gap+"+"+wording.Plural(int64(len(lines)-1), "line"), width)}
	}
	return append(append([]string{}, lines[:n-1]...), fitTo(fmt.Sprintf("... %d more lines", len(lines)-n+1), width))
}

// beside is a text and another one at the right end of the line, which is cut last.
func beside(left, right string, width int) string {
	if width == 0 {
		return left + right
	}
	right = fit(right, width)
	room := width - ansi.StringWidth(right)
	return pad(fit(left, room), room, false) + right
}

func (f *framer) fit(s string) string { return fitTo(s, f.width) }

func fitTo(s string, width int) string {
	if width == 0 {
		return s
	}
	return fit(s, width)
}

func (f *framer) wrap(s string) []string {
	if f.width == 0 {
		return []string{s}
	}
	return wrapped(s, f.width)
}
