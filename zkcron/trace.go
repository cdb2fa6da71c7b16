package zkcron

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
)

// The outcomes of a tick for a zksync.TickTracer. Each run whose start is in the record has one of the first four: from the
// process that has written its end there, or from the one that has found that there is none.
const (
	tickDone      = "done"
	tickFailed    = "failed"
	tickPanicked  = "panicked"
	tickAbandoned = "abandoned"
	tickMissed    = "missed" // ticks that do not run
)

// trace calls the tracer with the outcome of r, if it wants that.
func (s *shift) trace(ctx context.Context, outcome string, r run, more session.Tick) {
	t := s.cron.at.Session.Trace()
	if t == nil || t.Tick == nil {
		return
	}
	more.Path, more.Name, more.Job, more.Outcome = s.cron.at.Path, s.cron.at.Settings.Label, s.name, outcome
	more.Scheduled, more.OutOfTurn = r.Scheduled.In(s.zone), s.extra
	if outcome != tickMissed {
		more.Token = node.Token(r.Token)
	}
	t.Tick(ctx, more)
}

// traceAbandoned calls it for the run r, which did not come to its end.
func (s *shift) traceAbandoned(ctx context.Context, r run) {
	s.trace(ctx, tickAbandoned, r, session.Tick{Err: errors.New(abandoned)})
}

// traceEnd calls it with the end of the newest run, unless that could not be recorded: then the next holder finds none.
func (s *shift) traceEnd(ctx context.Context, outcome string, began time.Time, err error) {
	if !s.record.underWay() {
		s.trace(ctx, outcome, *s.record.newest(s.extra), session.Tick{Took: time.Since(began), Err: err})
	}
}
