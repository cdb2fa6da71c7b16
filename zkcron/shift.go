package zkcron

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
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
	extra   bool // the newest run is one out of turn

	requests chan struct{} // has a value when the requests have to be listed
	watch    *zkconn.Watch // of the requests
	request  request       // one that waits, or has waited
}

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
	s.requests = make(chan struct{}, 1)
	s.requests <- struct{}{}
	defer s.unwatch()
	for {
		if err := s.giveUp(ctx); err != nil {
			return err
		}
		// A request comes before a tick that is due, and that tick before the next request: neither can hold up the other.
		if err := s.serveRequests(ctx); err != nil {
			return err
		}
		now := s.cron.clock.now()
		t, due := s.next(now)
		if due.After(now) {
			if err := s.until(ctx, due); err != nil {
				return err
			}
			continue // more ticks than one may have passed, if this machine was asleep
		}
		if ctx.Err() != nil {
			return errs.OfContext(ctx) // a tick that has come meanwhile is for another holder
		}
		if err := s.tick(ctx, t, due); err != nil {
			return err
		}
	}
}

// giveUp has a run that did not come to its end not run again, if the job has WithAtMostOnce.
func (s *shift) giveUp(ctx context.Context) error {
	if !s.record.underWay() || !s.wants.AtMostOnce {
		return nil
	}
	last := s.record
	s.extra = !last.unfinished()
	last.newest(s.extra).Err = abandoned
	if err := s.write(ctx, last); err != nil {
		return err
	}
	s.log("tick given up").Warn("a tick did not come to its end, and is not run again",
		"job", s.name, "path", s.cron.at.Path, "reason", s.scheduled(last.newest(s.extra).Scheduled))
	s.traceAbandoned(ctx, *last.newest(s.extra))
	return nil
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
			"job", s.name, "path", s.cron.at.Path, "reason", s.scheduled(s.record.Scheduled))
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

// scheduled says in a line of the log which run it is about.
func (s *shift) scheduled(at time.Time) string {
	if s.extra {
		return "out of turn, at " + at.Format(time.RFC3339Nano)
	}
	return "scheduled for " + at.Format(time.RFC3339Nano)
}

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

// write sets the record, while the lease lasts and the job has our terms. The checks come after it in the transaction: one that is
// repeated is refused because of the record's version before it is refused by them.
func (s *shift) write(ctx context.Context, to run, checks ...any) error {
	return s.set(ctx, to, 1, append([]any{&zk.CheckVersionRequest{Path: s.node, Version: s.agreed.Number}, nil}, checks...))
}

// set sets the record, while the lease lasts and the other operations pass. It is the operation with the index at.
func (s *shift) set(ctx context.Context, to run, at int, ops []any) error {
	data := record.Encode(to)
	for pace := (node.Pace{}); ; {
		sent := s.cron.clock.wall()
		ops[at] = &zk.SetDataRequest{Path: s.node + recordName, Data: data, Version: s.version}
		res, err := s.lease.GuardBare(ctx, ops)
		switch {
		case err == nil:
			s.record, s.version = to, zkconn.NextVersion(s.version)
			if len(res) > at && res[at].Stat != nil {
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
		case record.RefusedAt(err, at+1, zk.ErrNoNode):
			return errWithdrawn
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

// next is the tick that is to run next, by the record and at this time, and when it is due. If that is in the future, ask again later.
func (s *shift) next(now time.Time) (t Tick, due time.Time) {
	t = Tick{Name: s.name, LastErr: s.record.Err}
	if s.record.unfinished() {
		t.Scheduled, t.Missed, t.LastErr = s.record.Scheduled.In(s.zone), s.record.Missed, abandoned
		return t, t.Scheduled
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
		return t, s.due(t.Scheduled)
	}
	// There may be too many to go through. The newest may be due later, so the one before it is looked at, too.
	if p, ok := s.schedule.(periodic); ok && now.Sub(t.Scheduled) > time.Duration(p) {
		t.Missed = int(now.Sub(t.Scheduled)/time.Duration(p)) - 1
		t.Scheduled = t.Scheduled.Add(time.Duration(t.Missed) * time.Duration(p))
	}
	for due = s.due(t.Scheduled); !due.After(now); t.Missed++ {
		following := s.schedule.next(t.Scheduled)
		later := s.due(following)
		late := s.wants.Missed == Skip && now.Sub(due) > 2*s.lease.Ticket().Epoch.Timeout()
		if later.After(now) && !late {
			break
		}
		t.Scheduled, due = following, later
	}
	return t, due
}

// due is when a tick begins: at its time, or, with WithJitter, at a moment within the jitter and before the next tick. The moment
// follows from the tick and from the job's node, which is another one in each cluster, also if the path is the same.
func (s *shift) due(tick time.Time) time.Time {
	if s.jitter == 0 {
		return tick
	}
	h := fnv.New64a()
	fmt.Fprintln(h, s.terms.Base, s.agreed.Founded)
	moment := rand.New(rand.NewPCG(h.Sum64(), uint64(tick.UnixNano())))
	within := min(s.jitter, s.schedule.next(tick).Sub(tick))
	return tick.Add(time.Duration(moment.Int64N(int64(max(within, 1)))))
}

// until waits for a time of day, or for a request. A timer does not notice that the clock is set, so until looks at the clock each minute.
func (s *shift) until(ctx context.Context, at time.Time) error {
	for {
		rest := at.Sub(s.cron.clock.now())
		if rest <= 0 {
			return nil
		}
		asked := false
		select {
		case <-time.After(min(rest, time.Minute)):
		case <-s.requests:
			s.heard()
			asked = true
		case <-s.lease.UnwatchedContext().Done():
		case <-ctx.Done():
		}
		if err := s.lease.Err(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errs.OfContext(ctx)
		}
		if asked {
			return nil
		}
	}
}
