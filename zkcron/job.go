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
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.jobs, func(other *job) bool { return other.name == name }) {
		j.refuse("it is registered twice")
	}
	c.jobs, c.bad = append(c.jobs, j), cmp.Or(c.bad, j.bad)
}

// JobOption changes a default of one job. All processes must give the same ones.
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
