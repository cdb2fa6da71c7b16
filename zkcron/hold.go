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
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// hold is what a process does while it holds the lease of a job.
//
// Nobody else writes to the job's record meanwhile. Each write is one transaction: it checks the node of the lease, so it
// is not applied after the lease; it checks the terms, unless it is the end of a tick; and it sets the record at the version
// that the hold knows, so it is applied once, however often it is sent.
type hold struct {
	*runner
	lease *lease.Lease

	record  run       // as it is on the servers
	version int32     // of its node
	from    time.Time // ticks before it are not of this schedule
	ticks   uint32
}

// maxErr is how much of an error's text is kept.
const maxErr = 4096

// abandoned is the error of a run whose end nobody has written.
const abandoned = "the process ended, or lost its lease, before the function returned"

// errMeddled means that the nodes are not as this hold left them: the job has other terms, or somebody else has changed them.
var errMeddled = errors.New("the nodes of the job were changed by others")

// serve runs the ticks, until ctx or the lease ends, or something is wrong.
func (h *hold) serve(ctx context.Context) error {
	h.lease.Context() // so that the hold hears of it if somebody removes the node of the lease
	if err := h.take(ctx); err != nil {
		return err
	}
	for {
		if h.record.unfinished() && h.wants.AtMostOnce {
			givenUp := h.record
			givenUp.Err = abandoned
			if err := h.write(ctx, givenUp); err != nil {
				return err
			}
			h.logger().Warn("a tick did not come to its end, and is not run again", "scheduled", givenUp.Scheduled)
		}
		now := h.cron.clock.now()
		t := h.next(now)
		if t.Scheduled.After(now) {
			if err := h.until(ctx, t.Scheduled); err != nil {
				return err
			}
			continue // more ticks than one may have passed, if this machine was asleep
		}
		if ctx.Err() != nil { // a tick that has come meanwhile is for another holder; a write alone might still succeed
			return errs.OfContext(ctx)
		}
		if err := h.tick(ctx, t); err != nil {
			return err
		}
	}
}

// take reads the record. This session has seen that the holder before left, or that nobody was there. So it sees what
// that holder wrote. Then it writes the record as it is: the answer proves that the terms are ours, and tells the
// time by the servers' clock before the first tick.
func (h *hold) take(ctx context.Context) error {
	if err := h.confirm(ctx); err != nil {
		return err
	}
	data, version, err := h.read(ctx)
	if err == nil {
		h.version = version
		h.record, err = decode(data)
	}
	if err != nil {
		return err
	}
	if ahead := h.record.Scheduled.Sub(h.cron.clock.now()); ahead > tolerance {
		h.logger().Warn("the last tick lies in the future: a clock was wrong, and no tick runs before that time", "scheduled", h.record.Scheduled)
	}
	h.from = time.UnixMilli(h.agreed.Written)
	return h.write(ctx, h.record)
}

// confirm makes sure that the job is the one that had our terms. Its number does not tell: if a process lost its place with
// a job that was removed, and queues again, another may have made the job with other terms, and the same number. It cannot
// change after this look without the end of the lease, whose node is below it.
func (h *hold) confirm(ctx context.Context) error {
	if h.tries <= 1 {
		return nil
	}
	v, there, err := h.terms.Peek(ctx, h.lease.Ticket().Epoch)
	if err == nil && (!there || v.Founded != h.agreed.Founded) {
		err = errMeddled
	}
	return err
}

func (h *hold) logger() *slog.Logger {
	return h.cron.at.Logger().With("job", h.name, "path", h.cron.path)
}

// read reads the record as it is on the servers. It makes it again if somebody has removed it.
func (h *hold) read(ctx context.Context) (data []byte, version int32, err error) {
	e, path := h.lease.Ticket().Epoch, h.cron.at.Full(h.node)+recordName
	err = record.Insist(ctx, e, func() error {
		var stat *zk.Stat
		if data, stat, err = e.Get(ctx, path); err == nil {
			version = stat.Version
		} else if errors.Is(err, zk.ErrNoNode) {
			switch _, err = e.Create(ctx, path, nil, 0, h.cron.at.ACL()); {
			case err == nil, errors.Is(err, zk.ErrNodeExists):
				err = record.ErrAgain
			case errors.Is(err, zk.ErrNoNode): // the job itself was removed
				err = errMeddled
			}
		}
		return err
	})
	return data, version, err
}

// write sets the record, while the lease holds and the job has our terms.
func (h *hold) write(ctx context.Context, to run) error {
	return h.set(ctx, to, &zk.CheckVersionRequest{Path: h.node, Version: h.agreed.Number})
}

// set sets the record, while the lease holds and the checks do.
func (h *hold) set(ctx context.Context, to run, checks ...any) error {
	data, at := record.Encode(to), len(checks)
	for pace := (node.Pace{}); ; {
		sent := h.cron.clock.wall()
		res, err := h.lease.GuardWithin(ctx, append(checks[:at:at], &zk.SetDataRequest{Path: h.node + recordName, Data: data, Version: h.version}))
		switch {
		case err == nil:
			h.record, h.version = to, zkconn.NextVersion(h.version)
			if len(res) == at+1 && res[at].Stat != nil {
				h.cron.clock.heard(sent, h.cron.clock.wall(), res[at].Stat.Mtime, h.cron.at.Logger())
			}
			return nil
		case record.RefusedAt(err, at, zk.ErrBadVersion):
			// Either it had been applied before; the answer that refused it shows that the server knows. Or somebody else wrote.
			found, version, err := h.read(ctx)
			if err == nil && (version != zkconn.NextVersion(h.version) || string(found) != string(data)) {
				err = errMeddled
			}
			if err == nil {
				h.record, h.version = to, version
			}
			return err
		case record.Conflict(err):
			return errMeddled
		case !zksync.Ambiguous(err) || h.lease.Err() != nil || ctx.Err() != nil:
			return err
		}
		// The answer was lost. If that request was applied, or is applied later, the next one is refused.
		if err := pace.Rest(ctx, h.lease.Ticket().Epoch); err != nil {
			return err
		}
	}
}

// next is the tick that is to run next, by what the record says at this time. If its time is yet to come,
// whoever waits for it has to ask again.
func (h *hold) next(now time.Time) Tick {
	t := Tick{Name: h.name, LastErr: h.record.Err}
	if h.record.unfinished() {
		t.Scheduled, t.Missed, t.LastErr = h.record.Scheduled.In(h.zone), h.record.Missed, abandoned
		return t
	}
	// The job got its terms at a time by the clock of the leader then, which may have been wrong. The ticks begin now, and
	// this hold keeps to that: if it began with each look, no tick would ever be due.
	if h.from.After(now.Add(tolerance)) {
		h.from = now
	}
	last := h.from
	if h.record.Scheduled.After(last) {
		last = h.record.Scheduled
	}
	t.Scheduled = h.schedule.next(last.In(h.zone))
	if h.wants.Missed == RunAll {
		return t
	}
	if p, ok := h.schedule.(periodic); ok && now.After(t.Scheduled) { // there may be too many to go through
		t.Missed = int(now.Sub(t.Scheduled) / time.Duration(p))
		t.Scheduled = t.Scheduled.Add(time.Duration(t.Missed) * time.Duration(p))
	}
	for !t.Scheduled.After(now) {
		following := h.schedule.next(t.Scheduled)
		late := h.wants.Missed == Skip && now.Sub(t.Scheduled) > 2*h.lease.Ticket().Epoch.Timeout()
		if following.After(now) && !late {
			break
		}
		t.Scheduled = following
		t.Missed++
	}
	return t
}

// until waits for a time of day. The timer does not follow the clock when that is set, so it looks at it again.
func (h *hold) until(ctx context.Context, at time.Time) error {
	for {
		rest := at.Sub(h.cron.clock.now())
		if rest <= 0 {
			return nil
		}
		t := time.NewTimer(min(rest, time.Minute))
		select {
		case <-t.C:
		case <-h.lease.Lifetime().Done():
		case <-ctx.Done():
		}
		t.Stop()
		if err := h.lease.Err(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errs.OfContext(ctx)
		}
	}
}

// tick runs a tick. The function begins only when it is known that its start is in the record.
func (h *hold) tick(ctx context.Context, t Tick) error {
	// A hold that comes later has a token with a greater zxid: its entry was behind this one.
	h.ticks++
	t.Token = zksync.Token{Zxid: h.lease.Token().Zxid, Seq: h.ticks}
	before := h.record
	begun := run{Scheduled: t.Scheduled, Missed: t.Missed, Started: h.cron.clock.now(), Owner: h.cron.at.Owner(), Token: t.Token}
	if err := h.write(ctx, begun); err != nil {
		return err
	}
	if t.Scheduled.After(h.cron.clock.now()) {
		// The answer told the servers' time: this machine's clock was ahead, and the tick has not begun.
		return h.write(ctx, before)
	}
	if t.Missed > 0 {
		h.logger().Warn("ticks were missed", "missed", t.Missed, "scheduled", t.Scheduled)
	}
	err := h.call(ctx, t)
	if err != nil && ctx.Err() != nil {
		return errs.OfContext(ctx) // it did not come to its end, and the next holder runs it again
	}
	if err != nil {
		h.logger().Warn("a tick failed", "scheduled", t.Scheduled, "error", err)
	}
	return h.end(context.WithoutCancel(ctx), err)
}

// call runs the function.
func (h *hold) call(ctx context.Context, t Tick) error {
	ctx, end := h.lease.Bind(ctx)
	defer end()
	done := make(chan error, 1)
	go func() { // of its own, because it may call runtime.Goexit
		err := errors.New("the function called runtime.Goexit")
		defer func() {
			if p := recover(); p != nil {
				h.panicked(ctx, p)
				panic(p)
			}
			done <- err
		}()
		err = h.f(ctx, t)
	}()
	return <-done
}

// panicked records a panic as the error of its tick, or the next holder would run into the same one.
func (h *hold) panicked(ctx context.Context, p any) {
	h.cron.at.Logger().Error("a job panicked", "job", h.name, "panic", p, "stack", string(debug.Stack()))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.lease.Ticket().Epoch.Timeout())
	defer cancel()
	_ = h.end(ctx, fmt.Errorf("panic: %v", p)) // the process ends, whether it is recorded or not
}

// end writes the end of the run that the record tells of. The tick is done, so another holder must not run it again: the
// write is tried as long as the lease lasts, also if the context of Run has ended. If the job has other terms by now, the
// end is written all the same, and the hold is over.
func (h *hold) end(ctx context.Context, err error) error {
	ended := h.record
	ended.Ended = h.cron.clock.now()
	if err != nil {
		text := err.Error()
		ended.Err = cmp.Or(strings.ToValidUTF8(text[:min(len(text), maxErr)], ""), "an error without a text")
	}
	result := h.write(ctx, ended)
	if errors.Is(result, errMeddled) {
		if err := h.set(ctx, ended); err != nil {
			return err
		}
	}
	return result
}
