package zkcron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// This file has the runs out of turn. A request is an ephemeral sequential node below the record of the job, so it goes with its
// caller. The process with the lease watches the names of these nodes. It runs the job for the newest request, and so for all that it
// sees then: the start of the run has the number of that request, in a transaction that checks that its node still exists. A caller
// watches the record until the run for its number, or a later one, has ended.

// ErrFailed is the error of RunNow if the job ran and failed. The text has the error of the function.
var ErrFailed = errors.New("the run failed")

// request is a node that asks for a run out of turn.
type request struct {
	number int64 // greater than those of all requests before; 0 if there is none
	uuid   string
	path   string // on the servers
}

const requestSuffix = "-run-"

// requestOf reads the name of a node below the record.
func requestOf(name string) (r request, ok bool) {
	prefix, number, ok := strings.Cut(name, requestSuffix)
	n, err := strconv.ParseInt(number, 10, 64)
	return request{number: n + 1, uuid: strings.TrimPrefix(prefix, node.Prefix(""))}, ok && err == nil && n >= 0
}

// RunNow has the job run once out of turn, in the process that has its lease, wherever that is, and returns when the run has ended:
// nil, or [ErrFailed] with the text of the function's error. Calls that come before the run begins share it. If a run is under way,
// another one follows it. If the process dies, the next one runs the job again, as with a tick.
//
// If no process runs the job, RunNow waits. If ctx ends before the run begins, the request is withdrawn. If the job was never made,
// the error is zksync.ErrNotFound. The schedule is as without it: Tick.Missed, Tick.LastErr and [Cron.Last] are about ticks.
func (c *Cron) RunNow(ctx context.Context, name string) error {
	err := checkName(name)
	if err == nil {
		j := c.made().job(name)
		known := j != nil && j.bad == nil
		if !known {
			j = &job{name: name}
		}
		asks := &call{runner: newRunner(c, j), known: known}
		err = c.at.Run(ctx, "run now", asks.serve)
	}
	return c.at.Named("run now", err)
}

// call is a call of RunNow.
type call struct {
	*runner
	known bool    // the job is registered here, so the call may make it
	mine  request // its number is 0 before the call has asked
}

// serve asks for a run, and waits until it has ended. A session before may have asked.
func (c *call) serve(ctx context.Context, e *zkconn.Epoch) (err error) {
	begun := false
	if c.mine.number > 0 {
		begun, err = c.resume(ctx, e)
	}
	for pace := (node.Pace{Free: 2}); err == nil; err = pace.Rest(ctx, e) {
		if !begun {
			if err := c.ask(ctx, e); err != nil {
				return err
			}
		}
		failed, err := c.await(ctx, e)
		if errors.Is(err, errWithdrawn) { // another program has removed the node
			begun = false
			continue
		}
		if !errors.Is(err, zkconn.ErrOver) {
			node.Abandon(e, c.terms.Base+recordName, c.mine.uuid)
		}
		if err == nil && failed != "" {
			err = fmt.Errorf("%w: %s", ErrFailed, failed)
		}
		return err
	}
	return err
}

// resume finds out whether the run for which a session before has asked has begun. It removes the request first, if it is still there:
// after that, no run begins for it alone. So if it has not begun by then, the call may ask again.
func (c *call) resume(ctx context.Context, e *zkconn.Epoch) (begun bool, err error) {
	err = record.Insist(ctx, e, func() error { return e.Delete(ctx, c.mine.path) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	if err := record.Synced(ctx, e, c.terms.Base+recordName); err != nil { // the delete may have been refused by a server that lags
		return false, err
	}
	data, _, err := e.Get(ctx, c.terms.Base+recordName)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := decode(data)
	return r.number() >= c.mine.number, err
}

// ask makes the node of the request.
func (c *call) ask(ctx context.Context, e *zkconn.Epoch) error {
	dir := c.terms.Base + recordName
	var plain atomic.Bool
	plain.Store(true) // the data of the record are those of the holder
	for pace := (node.Pace{Free: 2}); ; {
		n, err := node.Make(ctx, e, node.Spec{
			Dir: dir, ACL: c.cron.at.ACL(), Flags: zk.FlagEphemeral | zk.FlagSequence, Data: c.cron.at.Owner, Plain: &plain,
			Name:   func(uuid string) string { return node.Prefix(uuid) + requestSuffix },
			Before: func() []any { return []any{&zk.CheckVersionRequest{Path: dir, Version: -1}} },
		})
		if err == nil {
			c.mine, _ = requestOf(n.Name)
			c.mine.path = n.Path
			return nil
		}
		switch {
		case errors.As(err, new(*node.Refused)):
			err = c.make(ctx, e)
		case errors.Is(err, node.ErrGone): // another program has removed it
			err = nil
		}
		if err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
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

// await waits until the run for the request has ended, and returns the text of its error. The error is errWithdrawn if the request is gone.
func (c *call) await(ctx context.Context, e *zkconn.Epoch) (failed string, err error) {
	l := record.Hear(e)
	defer l.Stop()
	for {
		var r run
		err := record.Insist(ctx, e, func() error {
			l.Stop()
			now, err := l.Read(ctx, c.terms.Base+recordName)
			if err == nil {
				r, err = decode(now.Data)
			}
			return err
		})
		if errors.Is(err, zk.ErrNoNode) {
			return "", errWithdrawn
		}
		if failed, done := r.outcome(c.mine.number); done || err != nil {
			return failed, err
		}
		heard, _, err := l.Next(ctx, time.Minute)
		if err != nil {
			return "", err
		}
		if heard == "" && r.number() < c.mine.number {
			if _, there, err := e.Exists(ctx, c.mine.path); err != nil || !there {
				return "", errors.Join(err, errWithdrawn)
			}
		}
	}
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
	if s.record.unfinished() || !s.record.underWay() && s.request.number <= s.record.number() {
		return nil
	}
	t := Tick{Name: s.name, Scheduled: s.cron.clock.now().In(s.zone), OutOfTurn: true, LastErr: s.record.Err}
	var checks []any
	if s.record.underWay() {
		t.Scheduled, t.LastErr = s.record.Extra.Scheduled.In(s.zone), abandoned
	} else {
		checks = []any{&zk.CheckVersionRequest{Path: s.request.path, Version: -1}}
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

// list finds the newest request that waits, and watches for others. A request that arrived twice at the servers has two nodes
// of one uuid: if a run has begun for the first, the second does not count.
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
	all := make([]request, 0, len(found.Names))
	for _, name := range found.Names {
		if r, ok := requestOf(name); ok {
			r.path = s.node + recordName + "/" + name
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.number, b.number) })
	for i, r := range all {
		twice := slices.ContainsFunc(all[:i], func(o request) bool { return o.uuid == r.uuid && o.number <= s.record.number() })
		if r.number > s.record.number() && !twice {
			s.request = r
		}
	}
	return nil
}
