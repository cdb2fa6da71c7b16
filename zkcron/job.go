package zkcron

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
)

// job is a job as it was registered. It does not change after that.
type job struct {
	name     string
	f        Func
	schedule schedule
	zone     *time.Location
	wants    terms
	timeout  time.Duration // 0 for none
	jitter   time.Duration
	bad      error
}

// terms are what all processes must agree on: the data of the job's node, which is written only to change them. Below it are the
// queue of the job, like the queue of a zksync.Mutex, and the record of the last run.
type terms struct {
	Spec       string `json:"spec"`
	Zone       string `json:"zone,omitempty"`
	Missed     Missed `json:"missed"`
	AtMostOnce bool   `json:"atMostOnce,omitempty"`
	Revision   int    `json:"revision,omitempty"`
}

const queueName, recordName = "/queue", "/record"

// checkName refuses a name that cannot be the name of a node.
func checkName(name string) error {
	if name == "" || strings.Contains(name, "/") || node.ValidatePath("/job/"+name) != nil {
		return errs.Misuse("a job of the name %s; a name is that of a node, without a slash", errs.Quote(name))
	}
	return nil
}

// register adds a job. set gives it its schedule.
func (c *Cron) register(name string, f Func, opts []JobOption, set func(*job)) {
	j := &job{name: name, f: f, bad: checkName(name), wants: terms{Missed: RunOnce}}
	for _, o := range opts {
		o(j)
	}
	if set(j); f == nil {
		j.refuse("a nil function")
	}
	j.checkJitter()
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.jobs, func(other *job) bool { return other.name == name }) {
		j.refuse("it is registered twice")
	}
	c.jobs, c.bad = append(c.jobs, j), cmp.Or(c.bad, j.bad)
}

// JobOption changes a default of one job. All processes must give the same ones, except [WithTimeout] and [WithJitter].
type JobOption func(*job)

// Missed says what happens to ticks that could not begin in time, because the one before still ran or no
// process had the lease.
type Missed string

const (
	// RunOnce, the default, runs the latest of the ticks that are due, however late, and leaves out the ones
	// before it.
	RunOnce Missed = "run once"
	// Skip is RunOnce, but leaves out the latest tick, too, if two session timeouts have passed since its
	// time.
	Skip Missed = "skip"
	// RunAll runs all ticks that are due, in order.
	RunAll Missed = "run all"
)

// WithMissed sets what happens to ticks that could not begin in time. The default is [RunOnce].
func WithMissed(m Missed) JobOption {
	return func(j *job) {
		if m != RunOnce && m != Skip && m != RunAll {
			j.refuse("missed ticks cannot be treated as %q; use Skip, RunOnce or RunAll", m)
		}
		j.wants.Missed = m
	}
}

// WithAtMostOnce does not retry a tick whose process died or lost its lease while running it. Its record then
// has no end.
func WithAtMostOnce() JobOption { return func(j *job) { j.wants.AtMostOnce = true } }

// WithRevision numbers a schedule; the default is 0. The greatest number is in force at once: the other
// processes leave the job.
func WithRevision(n int) JobOption {
	return func(j *job) {
		if n < 0 {
			j.refuse("revision %d; it must be 0 or greater", n)
		}
		j.wants.Revision = n
	}
}

// WithTimeout ends the context of the function when it has run for d. If the function then returns an error, the tick has
// failed, and the error says that it timed out; if it returns nil, the tick has succeeded. The process keeps the job until
// the function has returned. Processes may have different timeouts: that of the process that runs the tick counts.
func WithTimeout(d time.Duration) JobOption {
	return func(j *job) {
		if d <= 0 {
			j.refuse("a timeout of %v; it must be positive", d)
		}
		j.timeout = d
	}
}

// WithJitter has each tick begin at a random moment within d after its time, so that jobs of one schedule do not all begin at
// once. The moment depends on the job and on the tick: a process that takes over goes by the same one. It is always before
// the next tick: d must not be greater than the time between two ticks. Processes may have different jitters: that of
// the process with the lease counts.
func WithJitter(d time.Duration) JobOption {
	return func(j *job) {
		if d < 0 {
			j.refuse("a jitter of %v; it must not be negative", d)
		}
		j.jitter = d
	}
}

// checkJitter refuses a jitter beyond the next tick. It looks at some ticks; [shift.due] bounds it for all, also where the
// clocks change.
func (j *job) checkJitter() {
	if j.bad != nil || j.jitter <= 0 {
		return
	}
	s := j.schedule
	if c, ok := s.(crontab); ok { // the answer must not depend on when the clocks change
		s = crontab{c.SpecSchedule, time.UTC}
	}
	at := s.next(time.Unix(0, 0).UTC())
	for range 50 {
		following := s.next(at)
		if apart := following.Sub(at); j.jitter > apart {
			j.refuse("a jitter of %v, and its ticks are only %v apart at times; it must end before the next tick", j.jitter, apart)
			return
		}
		at = following
	}
}

// WithLocation sets the time zone of a spec; the default is UTC. time.Local, which differs from machine to
// machine, is zksync.ErrMisuse.
func WithLocation(loc *time.Location) JobOption {
	return func(j *job) {
		if loc == nil || loc == time.Local {
			j.refuse("a time zone without a name that all machines share; use time.LoadLocation")
			return
		}
		j.zone = loc
	}
}

// refuse makes Run fail because of how the job was registered. Only the first reason counts.
func (j *job) refuse(format string, args ...any) {
	if j.bad == nil {
		j.bad = errs.Misuse("job %q: %s", j.name, fmt.Sprintf(format, args...))
	}
}
