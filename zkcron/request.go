package zkcron

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// This file has the runs out of turn. A call first reads the version of the job's record: a run whose start is written after that is
// for this call. Then it creates a request: an ephemeral node below the record, with that version in its name, so it goes with its
// caller. The process with the lease watches the names of these nodes. It runs the job if one has a version after that of the last
// start, in a transaction that checks that the node still exists. So a request that arrives late, or twice, starts nothing if
// a run has begun for its call. A caller watches the record until such a run has ended.

// ErrFailed is the error of RunNow if the job ran and failed. The text has the error of the function.
var ErrFailed = errors.New("the run failed")

// request is a node that asks for a run out of turn.
type request struct {
	name  string // of the node; "" if there is none
	since int32  // the version of the record that the call has read
}

const requestPrefix = "run-"

// requestName is what the name of a request begins with.
func requestName(since int32) string { return fmt.Sprintf("%s%08x-", requestPrefix, uint32(since)) }

// requestOf reads the name of a node below the record.
func requestOf(name string) (since int32, ok bool) {
	rest, ok := strings.CutPrefix(name, requestPrefix)
	digits, _, more := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(digits, 16, 32)
	return int32(uint32(n)), ok && more && err == nil
}

// waiting are the requests among these names for which no run has begun.
func (r run) waiting(names []string) (all []request) {
	for _, name := range names {
		if since, ok := requestOf(name); ok && !r.begun(since) {
			all = append(all, request{name, since})
		}
	}
	return all
}

// RunNow has the job run once out of turn, in the process that has its lease, wherever that is, and returns when the run has ended:
// nil, or [ErrFailed] with the text of the function's error. Calls that come before the run begins share it. If a run is under way,
// another one follows it. If the process dies, the next one runs the job again, as with a tick.
//
// If no process runs the job, RunNow waits. If ctx ends before the run begins, the request is withdrawn. If the job was never made,
// the error is zksync.ErrNotFound. The schedule is as without it: Tick.Missed, Tick.LastErr and [Cron.Last] are about ticks.
func (c *Cron) RunNow(ctx context.Context, name string) error {
	j := c.made().job(name)
	known := j != nil && j.bad == nil
	if !known {
		j = &job{name: name}
	}
	asks := &call{runner: newRunner(c, j), known: known}
	err := checkName(name)
	if s, _ := ctx.Value(running{}).(*shift); err == nil && s != nil && s.cron.at.Session == c.at.Session && s.terms.Base == asks.terms.Base {
		err = errs.Misuse("the function of the job %s would wait for its own end; start RunNow in a goroutine with another context", errs.Quote(name))
	}
	if err == nil {
		err = c.at.Run(ctx, "run now", asks.serve)
	}
	return c.at.Named("run now", err)
}

// running is the key of the context of a job's function. The value is the shift.
type running struct{}

// call is a call of RunNow.
type call struct {
	*runner
	known bool  // the job is registered here, so the call may make it
	made  int64 // the czxid of the record; 0 before the call has read it
	since int32 // its version then
}

// serve asks for a run, unless one has begun since the call began, and waits until it has ended. A session before may have asked.
func (c *call) serve(ctx context.Context, e *zkconn.Epoch) error {
	dir, mine := c.terms.Base+recordName, ""
	defer func() {
		if mine != "" {
			node.Settle(e, e.Reap(zkconn.Orphan{Dir: dir, Node: mine}), node.Grace)
		}
	}()
	l := record.Hear(e)
	defer l.Stop()
	for pace := (node.Pace{Free: 2}); ; {
		r, err := c.read(ctx, e, l)
		if failed, done := r.outcome(c.since); done && err == nil {
			if failed != "" {
				err = fmt.Errorf("%w: %s", ErrFailed, failed)
			}
			return err
		}
		if err == nil && mine == "" && !r.begun(c.since) {
			id := ""
			if id, err = record.PutNamedMark(ctx, e, dir, requestName(c.since), c.cron.at.ACL()); err == nil {
				mine = dir + "/" + id
			}
		}
		if err == nil {
			mine, err = c.listen(ctx, e, l, mine)
		} else if errors.Is(err, zk.ErrNoNode) {
			mine = ""
			if err = c.make(ctx, e); err == nil {
				err = pace.Rest(ctx, e)
			}
		}
		if err != nil {
			return err
		}
	}
}

// read reads the record, and listens to its next change. When it reads the record for the first time, that is as it was after the
// call began: a run that has begun before does not count.
func (c *call) read(ctx context.Context, e *zkconn.Epoch, l *record.Listener) (r run, err error) {
	err = record.Insist(ctx, e, func() error {
		if c.made == 0 {
			if err := record.Synced(ctx, e, c.terms.Base+recordName); err != nil {
				return err
			}
		}
		l.Stop()
		now, err := l.Read(ctx, c.terms.Base+recordName)
		if err != nil {
			return err
		}
		if c.made == 0 {
			c.made, c.since = now.Stat.Czxid, now.Stat.Version
		} else if c.made != now.Stat.Czxid { // another program has removed the record
			c.made = 0
			return zk.ErrNoNode
		}
		r, err = decode(now.Data)
		return err
	})
	return r, err
}

// listen waits until the record may have changed. It returns the path of the request, "" if another program has removed it.
func (c *call) listen(ctx context.Context, e *zkconn.Epoch, l *record.Listener, mine string) (string, error) {
	heard, _, err := l.Next(ctx, time.Minute)
	if err == nil && heard == "" && mine != "" {
		var there bool
		if _, there, err = e.Exists(ctx, mine); err == nil && !there {
			mine = ""
		}
	}
	return mine, err
}

// make makes the job if it is registered here, or its record if another program has removed that.
func (c *call) make(ctx context.Context, e *zkconn.Epoch) error {
	if err := record.Synced(ctx, e, c.terms.Base); err != nil {
		return err
	}
	_, there, err := c.terms.Peek(ctx, e)
	switch {
	case err != nil:
		return err
	case there:
		_, err = e.Create(ctx, c.terms.Base+recordName, nil, 0, c.cron.at.ACL())
		if errors.Is(err, zk.ErrNodeExists) || zkconn.Unknown(err) {
			err = nil // the next attempt finds out
		}
		return err
	case !c.known:
		if _, _, err := c.cron.root.Peek(ctx, e); err != nil { // it refuses another type
			return err
		}
		return fmt.Errorf("%w: a job %q", zksync.ErrNotFound, c.name)
	}
	if _, err = c.cron.root.ReadOrMake(ctx, e); err == nil {
		_, err = c.terms.Make(ctx, e)
	}
	return err
}

// errWithdrawn means that the node of a request is gone.
var errWithdrawn = errors.New("the request is gone")

// heard notes that the requests have to be listed.
func (s *shift) heard() {
	select {
	case s.requests <- struct{}{}:
	default:
	}
}

// serveRequests does a run out of turn if a request waits, or if one was begun and not ended.
func (s *shift) serveRequests(ctx context.Context) error {
	select {
	case <-s.requests:
		if err := s.list(ctx); err != nil {
			return err
		}
	default:
	}
	if s.record.unfinished() || !s.record.underWay() && (s.request.name == "" || s.record.begun(s.request.since)) {
		return nil
	}
	t := Tick{Name: s.name, Scheduled: s.cron.clock.now().In(s.zone), OutOfTurn: true, LastErr: s.record.Err}
	var checks []any
	if s.record.underWay() {
		t.Scheduled, t.LastErr = s.record.Extra.Scheduled.In(s.zone), abandoned
	} else {
		checks = []any{&zk.CheckVersionRequest{Path: s.node + recordName + "/" + s.request.name, Version: -1}}
	}
	err := s.tick(ctx, t, t.Scheduled, checks...)
	if errors.Is(err, errWithdrawn) {
		s.heard()
		return nil
	}
	return err
}

// unwatch ends the watch of the requests, if there is one.
func (s *shift) unwatch() {
	if s.watch != nil {
		s.watch.Stop()
	}
}

// list finds a request for which no run has begun, and watches for others.
func (s *shift) list(ctx context.Context) error {
	e, dir := s.lease.Ticket().Epoch, s.terms.Base+recordName
	s.unwatch()
	var found zkconn.Listing
	r := node.Insist(ctx, e)
	for r.Next() {
		s.watch, found, r.Err = e.WatchChildren(ctx, dir, func(zkconn.Event) { s.heard() })
	}
	switch {
	case errors.Is(r.Err, zk.ErrNoNode):
		return errMeddled
	case r.Err != nil:
		return r.Err
	}
	s.request = request{}
	for _, r := range s.record.waiting(found.Names) {
		s.request = r
	}
	return nil
}
