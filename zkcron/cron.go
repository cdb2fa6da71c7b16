package zkcron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Func is what a job does. Its context ends with Run's context and with the lease (cause zksync.ErrLost):
// from then on another process may run the tick again. An error or a panic is recorded and passed to the next
// tick; the tick does not run again. A panic then ends the process.
type Func func(ctx context.Context, t Tick) error

// Tick is one run of a job.
type Tick struct {
	Name      string       // of the job
	Scheduled time.Time    // by the schedule, in the time zone of the job; it identifies the tick
	OutOfTurn bool         // it runs because of RunNow; Scheduled is when it first began
	Token     zksync.Token // fencing token, greater than those of all earlier runs of this job
	Missed    int          // ticks since the last run that did not run
	LastErr   string       // of the tick before; empty if it succeeded
}

// Record describes the last run of a job.
type Record struct {
	Scheduled time.Time // of the tick
	Started   time.Time
	Ended     time.Time    // zero if it still runs, or was not finished
	Owner     zksync.Owner // the process
	Err       string       // empty if it succeeded, or has not ended
}

// Cron is the schedule of one process.
type Cron struct {
	at    *session.Access
	root  record.Terms[struct{}]
	clock clock

	mu   sync.Mutex
	jobs []*job
	bad  error // of the registration of a job
}

// New names a schedule. Its options are WithACL and WithName.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Cron {
	c := &Cron{at: session.NewAccess("zkcron", (*session.Session)(s), path, opts).Without(session.OfHolds...)}
	c.clock.wall = time.Now
	c.root = record.Terms[struct{}]{
		Base: c.at.Full(c.local()), ACL: c.at.ACL(), Type: layout.Cron,
		First: func() (struct{}, []string) { return struct{}{}, nil },
		Check: func(struct{}) error { return nil },
	}
	return c
}

// made is c, which New has made. Of a zero or nil value it panics.
func (c *Cron) made() *Cron {
	if c == nil || c.at == nil {
		panic(errs.Unmade("zkcron", "a Cron", "New"))
	}
	return c
}

// local is the node below which the jobs are, as the user knows it.
func (c *Cron) local() string { return c.at.Path + "/" + layout.Cron }

// Every registers a job with a tick at each multiple of d, at least a millisecond, since the Unix epoch. The
// name is the name of a node. Later calls of Run report what is wrong.
func (c *Cron) Every(name string, d time.Duration, f Func, opts ...JobOption) {
	c.made().register(name, f, opts, func(j *job) {
		if j.zone != nil {
			j.refuse("WithLocation goes with At only")
		}
		s, text, _, err := parsePeriod(d.String(), time.UTC)
		if err != nil {
			j.refuse("%v", err)
		}
		j.schedule, j.zone, j.wants.Spec = s, time.UTC, text
	})
}

// At is [Cron.Every] with the ticks of a crontab spec: minute, hour, day of the month, month, day of the
// week; or of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly. "@every 5m" is Every: its ticks are
// multiples of five minutes since the epoch, wherever and whenever a process starts. A prefix such as
// "CRON_TZ=Europe/Berlin ", or [WithLocation], names a time zone.
func (c *Cron) At(name, spec string, f Func, opts ...JobOption) {
	c.made().register(name, f, opts, func(j *job) {
		s, text, zone, err := parse(spec, j.zone)
		if err != nil {
			j.refuse("the spec %q: %v", spec, err)
		}
		if j.schedule, j.zone, j.wants.Spec = s, zone, text; !strings.HasPrefix(text, "@every ") {
			j.wants.Zone = zoneName(zone)
		}
	})
}

// Next is the time of the next tick of a job that is registered here, without WithJitter. It is false if there is no such job,
// or no tick in the next hundred years. It makes no request.
func (c *Cron) Next(name string) (time.Time, bool) {
	j := c.made().job(name)
	if j == nil || j.schedule == nil {
		return time.Time{}, false
	}
	now := c.clock.now()
	t := j.schedule.next(now.In(j.zone))
	if !t.After(now) || !t.Before(now.AddDate(never, 0, 0).Add(-1)) { // the search has ended without a tick
		return time.Time{}, false
	}
	return t, true
}

// job is the registered job of a name; nil if there is none.
func (c *Cron) job(name string) *job {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.jobs, func(j *job) bool { return j.name == name }); i >= 0 {
		return c.jobs[i]
	}
	return nil
}

// Run waits for the lease of each job, and runs the ticks of the jobs whose lease it has. If the session is
// lost, it waits again.
//
// When ctx ends, or an error is permanent, it ends the contexts of the functions, waits until they have
// returned, records the ticks that have succeeded, and gives up all leases.
//
// While other processes have a job with another schedule or other options, Run waits with that job; with
// [WithRevision] it does not.
func (c *Cron) Run(ctx context.Context) error {
	c.made().mu.Lock()
	jobs, bad := c.jobs[:len(c.jobs):len(c.jobs)], c.bad
	c.mu.Unlock()
	if err := c.at.Misuse(); err != nil {
		bad = err
	}
	if bad != nil {
		return c.at.Named("run", bad)
	}
	all, each := errgroup.WithContext(ctx)
	all.Go(func() error { // also if there are no jobs
		select {
		case <-c.at.Closed():
			return zksync.ErrClosed
		case <-each.Done():
			return nil
		}
	})
	for _, j := range jobs {
		all.Go(func() error { return newRunner(c, j).run(each) })
	}
	err := all.Wait()
	if ctx.Err() != nil {
		err = errs.OfContext(ctx)
	}
	return c.at.Named("run", err)
}

// Last returns the record of the last run of a job, in any process; it may not have ended. If no process has
// ever run a job of this name, the error is zksync.ErrNotFound. All times are in UTC.
func (c *Cron) Last(ctx context.Context, name string) (Record, error) {
	var r run
	c.made()
	err := checkName(name)
	if err == nil {
		err = c.at.Run(ctx, "last", func(ctx context.Context, e *zkconn.Epoch) error {
			if err := record.Synced(ctx, e, c.root.Base); err != nil {
				return err
			}
			data, _, err := e.Get(ctx, c.root.Base+"/"+name+recordName)
			if errors.Is(err, zk.ErrNoNode) {
				_, _, err = c.root.Peek(ctx, e) // refuses another type
				if err == nil {
					err = fmt.Errorf("%w: a job %q", zksync.ErrNotFound, name)
				}
			}
			if err == nil {
				r, err = decode(data)
			}
			return err
		})
	}
	return r.public(), c.at.Named("last", err)
}
