package zkcron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Func is what a job does. Its context ends with that of Run, and with the lease under which the tick runs (cause
// zksync.ErrLost): from then on another process may run the tick again. If it returns an error, the record has that
// error, which is logged, and the next tick is told; the tick is not run again.
//
// A panic is recorded as the error of its tick, so that it does not go from process to process. Then it ends the
// process, like any panic in a goroutine.
type Func func(ctx context.Context, t Tick) error

// Tick is one run of a job.
type Tick struct {
	Name      string       // of the job
	Scheduled time.Time    // its time by the schedule, in the time zone of the job: it identifies the tick
	Token     zksync.Token // a fencing token: greater than that of every run of this job before; Seq counts the runs under one lease
	Missed    int          // how many ticks did not run between the last one that did and this one
	LastErr   string       // the error of the run before this one; empty if it succeeded
}

// Record is what is known of the last run of a job.
type Record struct {
	Scheduled time.Time    // which tick it was
	Started   time.Time    // when the run began
	Ended     time.Time    // zero if it still runs, or did not come to an end
	Owner     zksync.Owner // the process
	Err       string       // the error of the run; empty if it succeeded, or has not ended
}

// Cron is the schedule of one process. All Crons with the same path are one. It is safe for use by many goroutines.
type Cron struct {
	path  string
	at    *session.Access
	root  record.Terms[struct{}]
	clock clock

	mu   sync.Mutex
	jobs []*job
	bad  error // of the registration of a job
}

// New names a schedule by a path of its own, which is created when it is first needed. It does no I/O. The first call of
// Run or Last reports a malformed path, a nil session, or an option that is none of WithACL and WithName as
// zksync.ErrMisuse.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Cron {
	c := &Cron{path: path, at: session.NewAccess((*session.Session)(s), path, opts).Without(session.OfHolds...)}
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
		panic(errs.Unmade("a Cron", "New"))
	}
	return c
}

// local is the node below which the jobs are, as the user knows it.
func (c *Cron) local() string { return c.path + "/" + layout.Cron }

// Every registers a job with a tick at each multiple of d since the Unix epoch, in UTC: all processes have the same
// ticks, whenever they start. The first tick is the first one after the job was made on the servers. d is a millisecond at
// least. The name is that of a node: it must not be empty or have a slash. Every does no I/O, and concerns the calls of
// Run that begin later. Run reports what is wrong.
func (c *Cron) Every(name string, d time.Duration, f Func, opts ...JobOption) {
	c.made().register(name, f, opts, func(j *job) {
		switch {
		case d < time.Millisecond: // a tick costs two requests
			j.refuse("a period of %v; it must be a millisecond at least", d)
		case j.zone != nil:
			j.refuse("WithLocation goes with At only")
		}
		j.schedule, j.zone, j.wants.Spec = periodic(d), time.UTC, "@every "+d.String()
	})
}

// At registers a job with the ticks of a spec in five fields: minute, hour, day of the month, month, day of the week, as
// in crontab. With a prefix such as "CRON_TZ=Europe/Berlin " the spec is in that time zone; see also [WithLocation]. The package
// comment says what happens when the clocks of a zone change. Otherwise it is like [Cron.Every].
func (c *Cron) At(name, spec string, f Func, opts ...JobOption) {
	c.made().register(name, f, opts, func(j *job) {
		s, text, zone, err := parse(spec, j.zone)
		if err != nil {
			j.refuse("the spec %q: %v", spec, err)
		}
		j.schedule, j.zone, j.wants.Spec, j.wants.Zone = s, zone, text, zoneName(zone)
	})
}

// Run queues for the lease of each job, and runs the ticks of the jobs whose lease it holds.
//
// It blocks until ctx ends or an error is permanent. Then it ends the contexts of all running functions, waits until they have
// returned, and gives up all leases. Before it returns it records each tick that has succeeded, unless the lease ends first.
// If the session is lost, the contexts end, and Run queues again in the next one.
//
// A job that other processes have with another schedule or other options waits until the last of them has stopped, and is
// logged. [WithRevision] does not wait. A job that was registered wrongly is zksync.ErrMisuse.
// docs/cron.md has the requests.
func (c *Cron) Run(ctx context.Context) error {
	c.made().mu.Lock()
	jobs, bad := c.jobs[:len(c.jobs):len(c.jobs)], c.bad
	c.mu.Unlock()
	if err := c.at.Misuse(); err != nil {
		bad = err
	}
	if bad != nil {
		return errs.Wrap("run", c.path, bad)
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
	return errs.Wrap("run", c.path, err)
}

// Last returns the record of the last run of a job, by whichever process: the present one, if it runs now. It is zero if
// no tick of the job has run yet, and zksync.ErrNotFound if nobody has ever run a job of this name. All times are in UTC.
//
// It blocks for the servers' answers, until ctx ends (the error wraps the context's error). Without a connection it waits;
// in a new session it asks again. If the session is closed, the error is zksync.ErrClosed. If the path belongs to another
// type, it is zksync.ErrMisuse. It costs two requests, and makes nothing.
func (c *Cron) Last(ctx context.Context, name string) (Record, error) {
	var r run
	err := checkName(name)
	if err == nil {
		err = c.made().at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
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
	return r.public(), errs.Wrap("last", c.path, err)
}

// run is the data of a record. Before the first run nothing of it is set.
type run struct {
	Scheduled time.Time       `json:"scheduled,omitzero"`
	Missed    int             `json:"missed,omitempty"`
	Started   time.Time       `json:"started,omitzero"`
	Ended     time.Time       `json:"ended,omitzero"`
	Owner     json.RawMessage `json:"owner,omitempty"` // see [node.Content]
	Token     zksync.Token    `json:"token,omitzero"`
	Err       string          `json:"err,omitempty"`
}

// unfinished reports whether the run was begun, and nobody knows its end.
func (r run) unfinished() bool { return !r.Started.IsZero() && r.Ended.IsZero() && r.Err == "" }

func (r run) public() Record {
	return Record{r.Scheduled.UTC(), r.Started.UTC(), r.Ended.UTC(), zksync.Owner(node.Decode(r.Owner).Owner), r.Err}
}

func decode(data []byte) (r run, err error) {
	if len(data) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return run{}, fmt.Errorf("%w: the record of the job cannot be read: %w", zksync.ErrMisuse, err)
	}
	return r, nil
}
