package demo

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// screen shows how a demo gets on: on a terminal one line that changes, elsewhere a line
// now and then.
type screen struct {
	w       io.Writer
	live    bool
	started time.Time
	shown   time.Time // when progress was last shown
	dirty   bool      // the cursor stands behind a progress line
}

func newScreen(w io.Writer, live bool) *screen {
	now := time.Now()
	return &screen{w: w, live: live, started: now, shown: now}
}

// note prints a line that stays.
func (s *screen) note(format string, args ...any) {
	s.clear()
	fmt.Fprintf(s.w, format+"\n", args...)
}

// share is how much is done of a goal, if there is one.
func share(done int, of string, goal int) string {
	if goal == 0 {
		return strconv.Itoa(done)
	}
	return fmt.Sprintf("%d%s%d", done, of, goal)
}

// progress shows how much is done. A goal of 0 is none.
func (s *screen) progress(done, goal, alive int) {
	every := 2 * time.Second
	if s.live {
		every = 100 * time.Millisecond
	}
	now := time.Now()
	if now.Sub(s.shown) < every && done != goal {
		return
	}
	s.shown = now
	line := fmt.Sprintf("  %s rounds, %d processes, %.1fs", share(done, "/", goal), alive, now.Sub(s.started).Seconds())
	if !s.live {
		fmt.Fprintln(s.w, line)
		return
	}
	fmt.Fprintf(s.w, "\r\x1b[K%s", line)
	s.dirty = true
}

// clear removes a progress line, so that what follows starts on a line of its own.
func (s *screen) clear() {
	if s.dirty {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.dirty = false
	}
}
