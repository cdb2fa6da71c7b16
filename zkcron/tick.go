package zkcron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// maxErr is how many bytes of an error's text are kept.
const maxErr = 4096

// timedOut is the cause of a context that ended because of [WithTimeout]; it is a context.DeadlineExceeded, too.
type timedOut time.Duration

func (t timedOut) Error() string      { return "timed out after " + time.Duration(t).String() }
func (timedOut) Is(target error) bool { return target == context.DeadlineExceeded }

// start is the record at the start of a run.
func (s *shift) start(t Tick) run {
	r := run{Scheduled: t.Scheduled, Missed: t.Missed, Started: s.cron.clock.now(), Owner: s.cron.at.Owner(), Token: t.Token, Extra: s.record.Extra}
	if !t.OutOfTurn {
		return r
	}
	x, to := &extra{run: r, Version: s.version}, s.record
	x.Extra = nil
	switch before := s.record.Extra; {
	case before == nil:
	case before.unfinished(): // this is the same run once more
		x.Before, x.Failed = before.Before, before.Failed
	default:
		x.Before, x.Failed = before.Version, before.Err
	}
	to.Extra = x
	return to
}

// tick does a run. The function begins only when its start is known to be in the record. The start is not written if the checks fail.
func (s *shift) tick(ctx context.Context, t Tick, due time.Time, checks ...any) error {
	// A later shift has a token with a greater zxid: its entry was behind this one.
	s.ticks++
	t.Token = zksync.Token{Zxid: s.lease.Token().Zxid, Seq: s.ticks}
	s.extra = t.OutOfTurn
	before := s.record
	begun := s.start(t)
	longer, stop := node.Extend(ctx, node.Grace)
	defer stop()
	if err := s.write(longer, begun, checks...); err != nil {
		return err
	}
	// If ctx has ended meanwhile, the tick has not begun, and is for another holder. And perhaps this machine's clock was ahead: the
	// answer had the servers' time.
	if ctx.Err() != nil || due.After(s.cron.clock.now()) {
		return s.write(longer, before)
	}
	if t.Missed > 0 {
		s.log("ticks missed").Warn("ticks were missed",
			"job", s.name, "path", s.cron.at.Path, "reason", fmt.Sprintf("%d before the one that is %s", t.Missed, s.scheduled(t.Scheduled)))
	}
	switch {
	case before.underWay(): // this is another run of its tick
		s.traceAbandoned(ctx, *before.newest(s.extra))
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
		s.log("tick failed").Warn("a tick failed", "job", s.name, "path", s.cron.at.Path, "reason", s.scheduled(t.Scheduled), "error", err)
	}
	result := s.end(context.WithoutCancel(ctx), err)
	s.traceEnd(ctx, outcome, began, err)
	return result
}

// call runs the function.
func (s *shift) call(ctx context.Context, t Tick, began time.Time) error {
	ctx, end := s.lease.Bind(context.WithValue(ctx, running{}, s))
	defer end()
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, timedOut(s.timeout))
		defer cancel()
	}
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
	err := <-done
	switch cause := context.Cause(ctx); {
	case cause != timedOut(s.timeout):
	case err == nil:
		s.log("timeout").Warn("a tick succeeded after its timeout", "job", s.name, "path", s.cron.at.Path, "reason", s.scheduled(t.Scheduled))
	case !errors.Is(err, cause):
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return err
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
	record := s.record
	ended := record.newest(s.extra)
	ended.Ended = s.cron.clock.now()
	if err != nil {
		text := err.Error()
		ended.Err = cmp.Or(strings.ToValidUTF8(text[:min(len(text), maxErr)], ""), "an error without a text")
	}
	result := s.write(ctx, record)
	if errors.Is(result, errMeddled) {
		if err := s.set(ctx, record, 0, make([]any, 1)); err != nil {
			return err
		}
	}
	return result
}
