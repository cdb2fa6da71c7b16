package zkcron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// shift is the time in which a process has the lease of a job.
//
// No other process writes to the job's record meanwhile. Each write is one transaction. It checks the node of the lease, so it is
// not applied after the lease; it checks the terms, unless it is the end of a tick; and it sets the record at the known
// version, so it is applied once, however often it is sent.
type shift struct {
	*runner
	lease *lease.Lease

	record  run       // as it is on the servers
	version int32     // of its node
	from    time.Time // ticks before it are not of this schedule
	ticks   uint32
}

// maxErr is how many bytes of an error's text are kept.
const maxErr = 4096

// abandoned is the error of a run whose end was not recorded.
const abandoned = "the process ended, or lost its lease, before the function returned"

// errMeddled means that the nodes are not as this shift left them: the job has other terms, or another program has changed them.
var errMeddled = errors.New("the nodes of the job were changed by others")

// serve runs the ticks, until ctx or the lease ends, or something is wrong.
func (s *shift) serve(ctx context.Context) error {
	s.lease.Context() // watches the node of the lease: another program may remove it
	if err := s.take(ctx); err != nil {
		return err
	}
	for {
		if s.record.unfinished() && s.wants.AtMostOnce {
			last := s.record
			last.Err = abandoned
			if err := s.write(ctx, last); err != nil {
				return err
			}
			s.log("tick given up").Warn("a tick did not come to its end, and is not run again",
				"job", s.name, "path", s.cron.at.Path, "reason", scheduled(last.Scheduled))
			s.traceAbandoned(ctx, last)
		}
		now := s.cron.clock.now()
		t := s.next(now)
		if t.Scheduled.After(now) {
			if err := s.until(ctx, t.Scheduled); err != nil {
				return err
			}
			continue // more ticks than one may have passed, if this machine was asleep
		}
		if ctx.Err() != nil {
			return errs.OfContext(ctx) // a tick that has come meanwhile is for another holder
		}
		if err := s.tick(ctx, t); err != nil {
			return err
		}
	}
}

// take reads the record. This session has seen that the process before has left the queue, so it sees what that wrote. Then take writes
// the record as it is: the answer proves that the terms are ours, and has the servers' time before the first tick.
func (s *shift) take(ctx context.Context) error {
	data, stat, err := s.read(ctx)
	if err == nil {
		err = s.confirm(ctx, stat.Czxid)
	}
	if err == nil {
		s.version = stat.Version
		s.record, err = decode(data)
	}
	if err != nil {
		return err
	}
	if ahead := s.record.Scheduled.Sub(s.cron.clock.now()); ahead > tolerance {
		s.log("tick in the future").Warn("the last tick lies in the future: a clock was wrong, and no tick runs before that time",
			"job", s.name, "path", s.cron.at.Path, "reason", scheduled(s.record.Scheduled))
	}
	s.from = time.UnixMilli(s.agreed.Written)
	return s.write(ctx, s.record)
}

// confirm makes sure that the job is the one that had our terms. The version alone does not prove that: if the job was removed, another
// process may have made it with other terms and the same version. A record that was made with our job proves it; otherwise confirm looks.
// The job cannot change after that without the end of the lease, whose node is below it.
func (s *shift) confirm(ctx context.Context, recordMade int64) error {
	if recordMade == s.agreed.Founded {
		return nil
	}
	v, there, err := s.terms.Peek(ctx, s.lease.Ticket().Epoch)
	if err == nil && (!there || v.Founded != s.agreed.Founded) {
		err = errMeddled
	}
	return err
}

// log is the logger for a line about the job; what is the cause.
func (s *shift) log(what string) *slog.Logger { return s.cron.at.Log().Once(what, s.node) }

// scheduled says in a line of the log which tick it is about.
func scheduled(at time.Time) string { return "scheduled for " + at.Format(time.RFC3339Nano) }

// read reads the record as it is on the servers. If another program has removed it, read makes it again.
func (s *shift) read(ctx context.Context) (data []byte, stat *zk.Stat, err error) {
	e, path := s.lease.Ticket().Epoch, s.cron.at.Full(s.node)+recordName
	r := node.Insist(ctx, e)
	for r.Next() {
		if data, stat, r.Err = e.Get(ctx, path); errors.Is(r.Err, zk.ErrNoNode) {
			switch _, r.Err = e.Create(ctx, path, nil, 0, s.cron.at.ACL()); {
			case r.Err == nil, errors.Is(r.Err, zk.ErrNodeExists):
				r.Err = node.ErrAgain
			case errors.Is(r.Err, zk.ErrNoNode): // the job itself was removed
				r.Err = errMeddled
			}
		}
	}
	return data, stat, r.Err
}

// write sets the record, while the lease lasts and the job has our terms.
func (s *shift) write(ctx context.Context, to run) error {
	return s.set(ctx, to, &zk.CheckVersionRequest{Path: s.node, Version: s.agreed.Number})
}

// set sets the record, while the lease lasts and the checks pass.
func (s *shift) set(ctx context.Context, to run, checks ...any) error {
	data, at := record.Encode(to), len(checks)
	for pace := (node.Pace{}); ; {
		sent := s.cron.clock.wall()
		res, err := s.lease.GuardBare(ctx, append(checks[:at:at], &zk.SetDataRequest{Path: s.node + recordName, Data: data, Version: s.version}))
		switch {
		case err == nil:
			s.record, s.version = to, zkconn.NextVersion(s.version)
			if len(res) == at+1 && res[at].Stat != nil {
				s.cron.clock.heard(sent, s.cron.clock.wall(), res[at].Stat.Mtime, s.cron.at.Log())
			}
			return nil
		case record.RefusedAt(err, at, zk.ErrBadVersion):
			// Either it had been applied before, and this server knows that by now, or another program wrote.
			found, stat, err := s.read(ctx)
			if err == nil && (stat.Version != zkconn.NextVersion(s.version) || string(found) != string(data)) {
				err = errMeddled
			}
			if err == nil {
				s.record, s.version = to, stat.Version
			}
			return err
		case record.Conflict(err):
			return errMeddled
		case !zksync.Ambiguous(err) || s.lease.Err() != nil || ctx.Err() != nil:
			return err
		}
		// The answer was lost. If that request was applied, or is applied later, the next one is refused.
		if err := pace.Rest(ctx, s.lease.Ticket().Epoch); err != nil {
			return err
		}
	}
}

// next is the tick that is to run next, by the record and at this time. If it is in the future, ask again later.
func (s *shift) next(now time.Time) Tick {
	t := Tick{Name: s.name, LastErr: s.record.Err}
	if s.record.unfinished() {
		t.Scheduled, t.Missed, t.LastErr = s.record.Scheduled.In(s.zone), s.record.Missed, abandoned
		return t
	}
	// The job got its terms at a time by the leader's clock, which may have been wrong. Then the ticks begin now. The shift keeps
	// that time: if they began with each look, no tick would ever be due.
	if s.from.After(now.Add(tolerance)) {
		s.from = now
	}
	last := s.from
	if s.record.Scheduled.After(last) {
		last = s.record.Scheduled
	}
	t.Scheduled = s.schedule.next(last.In(s.zone))
	if s.wants.Missed == RunAll {
		return t
	}
	if p, ok := s.schedule.(periodic); ok && now.After(t.Scheduled) { // there may be too many to go through
		t.Missed = int(now.Sub(t.Scheduled) / time.Duration(p))
		t.Scheduled = t.Scheduled.Add(time.Duration(t.Missed) * time.Duration(p))
	}
	for !t.Scheduled.After(now) {
		following := s.schedule.next(t.Scheduled)
		late := s.wants.Missed == Skip && now.Sub(t.Scheduled) > 2*s.lease.Ticket().Epoch.Timeout()
		if following.After(now) && !late {
			break
		}
		t.Scheduled = following
		t.Missed++
	}
	return t
}

// until waits for a time of day. A timer does not notice that the clock is set, so until looks at the clock each minute.
func (s *shift) until(ctx context.Context, at time.Time) error {
	for {
		rest := at.Sub(s.cron.clock.now())
		if rest <= 0 {
			return nil
		}
		select {
		case <-time.After(min(rest, time.Minute)):
		case <-s.lease.UnwatchedContext().Done():
		case <-ctx.Done():
		}
		if err := s.lease.Err(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errs.OfContext(ctx)
		}
	}
}

// tick runs a tick. The function begins only when its start is known to be in the record.
func (s *shift) tick(ctx context.Context, t Tick) error {
	// A later shift has a token with a greater zxid: its entry was behind this one.
	s.ticks++
	t.Token = zksync.Token{Zxid: s.lease.Token().Zxid, Seq: s.ticks}
	before := s.record
	begun := run{Scheduled: t.Scheduled, Missed: t.Missed, Started: s.cron.clock.now(), Owner: s.cron.at.Owner(), Token: t.Token}
	longer, stop := node.Extend(ctx, node.Grace)
	defer stop()
	if err := s.write(longer, begun); err != nil {
		return err
	}
	// If ctx has ended meanwhile, the tick has not begun, and is for another holder. And perhaps this machine's clock was ahead: the
	// answer had the servers' time.
	if ctx.Err() != nil || t.Scheduled.After(s.cron.clock.now()) {
		return s.write(longer, before)
	}
	if t.Missed > 0 {
		s.log("ticks missed").Warn("ticks were missed",
			"job", s.name, "path", s.cron.at.Path, "reason", fmt.Sprintf("%d before the one that is %s", t.Missed, scheduled(t.Scheduled)))
	}
	switch {
	case before.unfinished(): // this is another run of its tick
		s.traceAbandoned(ctx, before)
	case t.Missed > 0:
		s.trace(ctx, tickMissed, begun, session.Tick{Missed: t.Missed})
	}
	began := time.Now()
	err := s.call(ctx, t, began)
	if err != nil && ctx.Err() != nil {
		return errs.OfContext(ctx) // it was not finished, and the next process runs it again
	}
	outcome := tickDone
	if err != nil {
		outcome = tickFailed
		s.log("tick failed").Warn("a tick failed", "job", s.name, "path", s.cron.at.Path, "reason", scheduled(t.Scheduled), "error", err)
	}
	result := s.end(context.WithoutCancel(ctx), err)
	s.traceEnd(ctx, outcome, began, err)
	return result
}

// call runs the function.
func (s *shift) call(ctx context.Context, t Tick, began time.Time) error {
	ctx, end := s.lease.Bind(ctx)
	defer end()
	done := make(chan error, 1)
	go func() { // of its own, because it may call runtime.Goexit
		err := errors.New("the function called runtime.Goexit")
		defer func() {
			if p := recover(); p != nil {
				s.panicked(ctx, p, began)
				panic(p)
			}
			done <- err
		}()
		err = s.f(ctx, t)
	}()
	return <-done
}

// panicked records a panic as the error of its tick, or the next process would run into the same one.
func (s *shift) panicked(ctx context.Context, p any, began time.Time) {
	s.log("panic").Error("a job panicked", "job", s.name, "path", s.cron.at.Path, "error", fmt.Errorf("%v\n%s", p, debug.Stack()))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.lease.Ticket().Epoch.Timeout())
	defer cancel()
	err := fmt.Errorf("panic: %v", p)
	_ = s.end(ctx, err) // the process ends, whether it is recorded or not
	s.traceEnd(ctx, tickPanicked, began, err)
}

// end writes the end of the run in the record. The tick is done, so no other process must run it again: end tries to write as long as
// the lease lasts, also if the context of Run has ended. If the job has other terms by now, it writes the end without the check of the
// terms, and the shift is over.
func (s *shift) end(ctx context.Context, err error) error {
	ended := s.record
	ended.Ended = s.cron.clock.now()
	if err != nil {
		text := err.Error()
		ended.Err = cmp.Or(strings.ToValidUTF8(text[:min(len(text), maxErr)], ""), "an error without a text")
	}
	result := s.write(ctx, ended)
	if errors.Is(result, errMeddled) {
		if err := s.set(ctx, ended); err != nil {
			return err
		}
	}
	return result
}
