package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/go-menagerie/menagerie/bench/terminal"
)

// Line shows where a run is: on a terminal one line that changes, elsewhere a line for each measurement.
type Line struct {
	w    io.Writer
	live bool
	last string
}

// NewLine shows nothing yet.
func NewLine(w io.Writer) *Line { return &Line{w: w, live: terminal.Is(w)} }

// Show is for Config.Progress.
func (l *Line) Show(p Progress) {
	line := fmt.Sprintf("[%d/%d] %s, %s", p.Done+1, p.Total, p.Scenario.Name, Clients(p.Clients))
	if !l.live {
		if line != l.last {
			fmt.Fprintln(l.w, line)
		}
		l.last = line
		return
	}
	round := "warm-up"
	if p.Round > 0 {
		round = fmt.Sprintf("round %d of %d", p.Round, p.Rounds)
	}
	fmt.Fprintf(l.w, "\r\x1b[K%s: %s, %s", line, round, p.Peer)
	if left := p.Left.Round(time.Second); left > 0 {
		fmt.Fprintf(l.w, "; about %v left", left)
	}
}

// Clear removes the line that changes.
func (l *Line) Clear() {
	if l.live {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
}
