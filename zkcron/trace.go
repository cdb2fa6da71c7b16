package zkcron

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
)

// The outcomes of a tick that a zksync.TickTracer is told of. Each run whose start is in the record has one of the first four: from the
// process that has written its end there, or from the one that has found that there is none.
const (
	tickDone      = "done"
	tickFailed    = "failed"
	tickPanicked  = "panicked"
	tickAbandoned = "abandoned"
	tickMissed    = "missed" // ticks that do not run
)

// tell tells the tracer of the outcome of r, if it wants to know.
func (s *shift) tell(ctx context.Context, outcome string, r run, more session.Tick) {
	t := s.cron.at.Session.Trace()
	if t == nil || t.Tick == nil {
		return
	}
	more.Path, more.Name, more.Job, more.Outcome = s.cron.at.Path, s.cron.at.Settings.Label, s.name, outcome
	more.Scheduled = r.Scheduled.In(s.zone)
	if outcome != tickMissed {
		more.Token = node.Token(r.Token)
	}
	t.Tick(ctx, more)
}

// tellAbandoned tells it that the run r did not come to its end.
func (s *shift) tellAbandoned(ctx context.Context, r run) {
	s.tell(ctx, tickAbandoned, r, session.Tick{Err: errors.New(abandoned)})
}

// tellEnd tells it the end of the newest run, unless that could not be recorded: then the next holder finds none.
func (s *shift) tellEnd(ctx context.Context, outcome string, began time.Time, err error) {
	if !s.record.unfinished() {
		s.tell(ctx, outcome, s.record, session.Tick{Took: time.Since(began), Err: err})
	}
}
