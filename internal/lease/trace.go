package lease

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Trace tells the tracer, if there is one, that a lease is being acquired. The caller does that with the context traced, gives
// the result to end, which tells the tracer, and returns what end returns.
func Trace(ctx context.Context, at *session.Access, kind queue.Kind) (traced context.Context, end func(*Lease, error) (*Lease, error)) {
	t := at.Session.Trace()
	if t == nil {
		return ctx, func(l *Lease, err error) (*Lease, error) { return l, err }
	}
	began := time.Now()
	d := session.Traced{Path: at.Path, Name: at.Settings.Label, Kind: kind, Position: -1}
	inner := t.Start(ctx, d)
	return inner, func(l *Lease, err error) (*Lease, error) {
		if err == nil {
			d.Node, d.Token, d.Epoch = l.Node(), l.token, uint64(l.ticket.Epoch.Number())
		}
		d.Err, d.Span = err, time.Since(began)
		t.End(inner, d)
		return l, err
	}
}

// traceEnd tells the tracer, and the log after a loss, that the lease has ended.
func (l *Lease) traceEnd(err error) {
	s := l.access.Session
	t := s.Trace()
	if err == errs.ErrReleased && (t == nil || t.Release == nil) {
		return
	}
	held := time.Since(l.since)
	if err == errs.ErrReleased { // in the goroutine that released
		t.Release(l.UnwatchedContext(), l.traced(held))
		return
	}
	// A loss may end many leases, and each holder must be told in time, even
	// if a logger or tracer is slow. So these are called in a goroutine.
	s.Spawn(func() {
		why := err // err itself must not change, or each Unlock would allocate it
		if why == errs.ErrLost {
			why = l.ErrExplained(node.Grace)
		}
		args := []any{"path", l.access.Path, "token", l.token.String(), "held", held}
		if cause := l.ticket.Epoch.Cause(); cause != nil { // the session is lost, and not only the node
			args = append(args, "cause", cause)
		} else if l.ticket.WhyRemoved() != nil {
			args = append(args, "reason", strings.TrimPrefix(why.Error(), errs.ErrLost.Error()+": "))
		}
		s.Logger().Warn("lease lost", args...)
		if t != nil && t.Lost != nil {
			d := l.traced(held)
			d.Reason, d.Err = l.reason(err), why
			t.Lost(l.UnwatchedContext(), d)
		}
	})
}

// traced is what a tracer is told of a hold.
func (l *Lease) traced(held time.Duration) session.Traced {
	return session.Traced{
		Path: l.access.Path, Name: l.access.Settings.Label, Kind: l.ticket.Entry.Kind,
		Node: l.Node(), Token: l.token, Epoch: uint64(l.ticket.Epoch.Number()), Span: held,
	}
}

// reason is why a lease was lost that ended with err, as zksync.LossData has it.
func (l *Lease) reason(err error) string {
	switch {
	case errors.Is(err, errs.ErrMaxHold):
		return "max-hold"
	case err != errs.ErrLost: // explained has found that the session is over; it may also end after the removal of the node
		return "session"
	case l.ticket.WhyRemoved() != nil:
		return "revoked"
	}
	return "removed"
}
