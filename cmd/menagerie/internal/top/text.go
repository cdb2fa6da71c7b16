package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/internal/wording"
)

// Palette is what a terminal can show.
type Palette int

// The palettes. NO_COLOR and terminals without colours have Mono.
const (
	Bare Palette = iota
	Mono
	Colours
)

// style is how a text looks, by its meaning.
type style int

const (
	normal style = iota
	strong       // headings
	chosen       // the selected row
	warn         // unusual
	alarm        // wrong
)

// codes are the parameters of SGR for each style.
var codes = map[Palette]map[style]string{
	Mono:    {strong: "1", chosen: "7", warn: "1", alarm: "7"},
	Colours: {strong: "1", chosen: "7", warn: "33", alarm: "1;31"},
}

// paint gives a text a look.
func (p Palette) paint(text string, styles ...style) string {
	var all []string
	for _, st := range styles {
		if code := codes[p][st]; code != "" {
			all = append(all, code)
		}
	}
	if len(all) == 0 || text == "" {
		return text
	}
	return "\x1b[" + strings.Join(all, ";") + "m" + text + "\x1b[m"
}

// fit cuts a text to n columns, and marks that with "...".
func fit(s string, n int) string { return ansi.Truncate(s, max(n, 0), dots(n)) }

// fitMiddle cuts the middle of a path or an owner, because its end is the most useful.
func fitMiddle(s string, n int) string {
	width := ansi.StringWidth(s)
	if width <= n {
		return s
	}
	head := max(0, n-3) / 3
	tail := ansi.TruncateLeft(s, width-max(0, n-3-head), "")
	return ansi.Truncate(ansi.Truncate(s, head, "")+dots(n)+tail, max(n, 0), "") // a wide character may have been at the cut
}

func dots(n int) string { return "..."[:min(3, max(n, 0))] }

// pad fills a text to n columns.
func pad(s string, n int, right bool) string {
	fill := strings.Repeat(" ", max(0, n-ansi.StringWidth(s)))
	if right {
		return fill + s
	}
	return s + fill
}

// wrapped is a text in lines of at most n columns.
func wrapped(s string, n int) []string {
	lines := strings.Split(ansi.Wrap(s, n, ""), "\n")
	for i, line := range lines {
		lines[i] = fit(line, n) // a space may stand beyond the end of a line
	}
	return lines
}

// span is a duration in few letters.
func span(m survey.Millis) string {
	switch d := time.Duration(m); {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", float64(d.Milliseconds()/100)/10)
	default:
		return wording.Shortly(d)
	}
}

// number has one digit behind the point if it is small, and is "-" if it is unknown.
func number(x float64, known bool) string {
	switch {
	case !known:
		return "-"
	case x < 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
