// Package logs is the log of a session: nothing by one cause more than once a minute.
package logs

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"time"
)

// Pause is the least time between two lines that have one cause.
const Pause = time.Minute

// Log is the log of a session. A line above the debug level is logged by [Log.Once], so each names its cause, and what
// repeats a request a thousand times a second needs no rule of its own.
//
// This is not a slog.Handler in front of the user's: a handler has a line's text and values, and would have to guess which
// of these make the cause. A throttled server is one, whatever the path; a job that fails is one, whatever its error; each
// lost lease is one. Only the code that logs knows. Silence costs nothing: there is no goroutine and no timer, and what was
// logged is forgotten after the pause, when the next line comes. Time is that of the caller, in a test that of its bubble.
type Log struct {
	to *slog.Logger

	mu    sync.Mutex
	last  map[cause]time.Time // what was logged, and when; older than a Pause only until the next sweep
	sweep int                 // forget what is older once there are so many
}

// cause is why a line is logged: what has happened, and to what.
type cause struct{ what, about string }

// New returns a Log that writes to l; nil is silence.
func New(l *slog.Logger) *Log {
	if l == nil {
		l = silent
	}
	return &Log{to: l, last: make(map[cause]time.Time)}
}

// fewest is how many causes are remembered without a look at their age.
const fewest = 64

var silent = slog.New(slog.DiscardHandler)

// Debug logs each attempt, and what else only matters to a person who looks for a fault.
func (l *Log) Debug(msg string, args ...any) {
	ctx := context.Background()
	if !l.to.Enabled(ctx, slog.LevelDebug) {
		return
	}
	var caller [1]uintptr
	runtime.Callers(2, caller[:]) // not this line, for handlers that show where a line comes from
	r := slog.NewRecord(time.Now(), slog.LevelDebug, msg, caller[0])
	r.Add(args...)
	_ = l.to.Handler().Handle(ctx, r)
}

// Once returns the logger for one line. It is silent if there was a line with the same cause less than a Pause ago. what is a
// word for what has happened; about is to what: a path, a token, an error, as the case may be, or "".
func (l *Log) Once(what, about string) *slog.Logger {
	if !l.to.Enabled(context.Background(), slog.LevelError) {
		return silent
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.due(what, about)) {
		return silent
	}
	if len(l.last) >= l.sweep { // not at each line: a session that is lost may take thousands of leases with it
		maps.DeleteFunc(l.last, func(_ cause, at time.Time) bool { return now.Sub(at) >= Pause })
		l.sweep = max(fewest, 2*len(l.last))
	}
	l.last[cause{what, about}] = now
	return l.to
}

// Due is when Once lets the next line with this cause pass; the zero time if nothing is in its way.
func (l *Log) Due(what, about string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due(what, about)
}

// due is Due. mu is held.
func (l *Log) due(what, about string) (at time.Time) {
	if last, ok := l.last[cause{what, about}]; ok {
		at = last.Add(Pause)
	}
	return at
}

// ID is the id of a session, or a zxid, as the servers' own tools show it. It is a text, because handlers write numbers
// in other ways.
func ID(id int64) string { return fmt.Sprintf("0x%x", id) }
