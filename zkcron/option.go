package zkcron

import (
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// JobOption changes a default of one job. All processes must give the same ones: see [Cron.Run].
type JobOption func(*job)

// Missed says what becomes of the ticks that could not begin in time.
type Missed int

const (
	// RunOnce runs the latest of the ticks that are due, however late, and leaves out the ones before it. It is the default.
	RunOnce Missed = iota
	// Skip runs the latest of the ticks that are due if it is not late, and leaves out the others. A tick is late when
	// two session timeouts have passed since its time: the lease of a dead process ends before that.
	Skip
	// RunAll runs all ticks that are due, in order, however many there are.
	RunAll
)

// String is "run once", "skip" or "run all".
func (m Missed) String() string {
	switch m {
	case RunOnce:
		return "run once"
	case Skip:
		return "skip"
	case RunAll:
		return "run all"
	}
	return fmt.Sprintf("Missed(%d)", int(m))
}

// WithMissed sets what becomes of ticks that could not begin in time. The default is [RunOnce]. It does not concern a
// tick that was begun and not ended: see [AtMostOnce].
func WithMissed(m Missed) JobOption {
	return func(j *job) {
		if m < RunOnce || m > RunAll {
			j.refuse("%v is not a way to treat missed ticks; use Skip, RunOnce or RunAll", m)
		}
		j.wants.Missed = m.String()
	}
}

// AtMostOnce has a tick that was begun, and whose process died or lost its lease before the function returned, not run
// again. Its record keeps the time of its start, has no time of its end, and an error. The default is to run it again.
func AtMostOnce() JobOption { return func(j *job) { j.wants.AtMostOnce = true } }

// In sets the time zone of a spec. The default is UTC. All processes must give a zone of the same name. time.Local is a
// misuse, because it has one name and differs from machine to machine: use time.LoadLocation. So is In for [Cron.Every].
func In(loc *time.Location) JobOption {
	return func(j *job) {
		if loc == nil || loc == time.Local {
			j.refuse("a time zone without a name that all machines share; use time.LoadLocation")
			return
		}
		j.zone = loc
	}
}

// refuse makes Run fail because of how the job was registered. The first reason counts.
func (j *job) refuse(format string, args ...any) {
	if j.bad == nil {
		j.bad = fmt.Errorf("%w: job %q: %s", zksync.ErrMisuse, j.name, fmt.Sprintf(format, args...))
	}
}
