package zksync

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Tracers combines tracers for [WithTracer], which finds the optional parts of each. Nil ones are left out.
// They are called in order; each AcquireStart gets the context of the one before, and all other calls have
// the last one's.
func Tracers(t ...Tracer) Tracer {
	var all tracers
	for _, each := range t {
		switch each := each.(type) {
		case nil:
		case tracers:
			all = append(all, each...)
		default:
			all = append(all, each)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// tracers are several. No type can have just those optional parts that some of them have, so it has none: see tracing.
type tracers []Tracer

func (all tracers) AcquireStart(ctx context.Context, data AcquireStartData) context.Context {
	for _, t := range all {
		ctx = t.AcquireStart(ctx, data)
	}
	return ctx
}

func (all tracers) AcquireEnd(ctx context.Context, data AcquireEndData) {
	for _, t := range all {
		t.AcquireEnd(ctx, data)
	}
}

// tracing adapts t, and those optional parts that it implements. A part that none of several tracers implements stays nil.
func tracing(t Tracer) *session.Trace {
	all, several := t.(tracers)
	switch {
	case t == nil:
		return nil
	case !several:
		return adapt(t)
	}
	var sum *session.Trace
	for _, each := range all {
		sum = sum.With(adapt(each))
	}
	return sum
}

// adapt adapts one tracer.
func adapt(t Tracer) *session.Trace {
	trace := &session.Trace{
		Start: func(ctx context.Context, d session.Traced) context.Context {
			return t.AcquireStart(ctx, AcquireStartData{Path: d.Path, Name: d.Name, Kind: Kind(d.Kind), Position: d.Position})
		},
		End: func(ctx context.Context, d session.Traced) {
			t.AcquireEnd(ctx, AcquireEndData{
				Path: d.Path, Name: d.Name, Kind: Kind(d.Kind), Node: d.Node, Position: d.Position,
				Ahead: Owner(d.Ahead), AheadTrace: d.AheadTrace, Err: d.Err, Token: Token(d.Token), Waited: d.Span, Epoch: d.Epoch,
			})
		},
	}
	adaptHolds(trace, t)
	adaptSession(trace, t)
	adaptRecipes(trace, t)
	return trace
}

// adaptHolds adapts the optional parts about waits and holds.
func adaptHolds(trace *session.Trace, t Tracer) {
	if t, ok := t.(WaitTracer); ok {
		trace.Waits = append(trace.Waits, func(ctx context.Context, d session.Traced) {
			t.Wait(ctx, WaitData{Path: d.Path, Name: d.Name, Kind: Kind(d.Kind), Node: d.Node, Position: d.Position, Waited: d.Span, Epoch: d.Epoch})
		})
	}
	if t, ok := t.(ReleaseTracer); ok {
		trace.Release = func(ctx context.Context, d session.Traced) {
			t.Release(ctx, ReleaseData{Path: d.Path, Name: d.Name, Kind: Kind(d.Kind), Node: d.Node, Token: Token(d.Token), Held: d.Span, Epoch: d.Epoch})
		}
	}
	if t, ok := t.(LossTracer); ok {
		trace.Lost = func(ctx context.Context, d session.Traced) {
			t.Lost(ctx, LossData{
				Path: d.Path, Name: d.Name, Kind: Kind(d.Kind), Node: d.Node, Token: Token(d.Token), Held: d.Span,
				Reason: d.Reason, Err: d.Err, Epoch: d.Epoch,
			})
		}
	}
	if t, ok := t.(PropagationTracer); ok {
		trace.Propagate = t.Propagate
	}
}

// adaptSession adapts the optional parts about the session.
func adaptSession(trace *session.Trace, t Tracer) {
	if t, ok := t.(StateTracer); ok {
		trace.State = func(c session.Change) {
			t.StateChange(StateChangeData{From: State(c.From), To: State(c.To), Session: c.Session, Epoch: c.Epoch})
		}
	}
	if t, ok := t.(SessionTracer); ok {
		trace.Opened = func(s *session.Session) { t.Opened((*Session)(s)) }
	}
	if t, ok := t.(RequestTracer); ok {
		trace.Request = func(x zkconn.Exchange) {
			t.Request(RequestData{Op: x.Op, Duration: x.Duration, Code: x.Code, Err: x.Err, Sent: x.Sent, Received: x.Received})
		}
	}
}

// adaptRecipes adapts the optional parts about queues, jobs and groups.
func adaptRecipes(trace *session.Trace, t Tracer) {
	if t, ok := t.(DeliveryTracer); ok {
		trace.Delivery = func(ctx context.Context, d session.Delivery) {
			t.Delivery(ctx, DeliveryData{Path: d.Path, Name: d.Name, Event: d.Event, Attempt: d.Attempt, Token: Token(d.Token), Held: d.Held})
		}
	}
	if t, ok := t.(TickTracer); ok {
		trace.Tick = func(ctx context.Context, d session.Tick) {
			t.Tick(ctx, TickData{
				Path: d.Path, Name: d.Name, Job: d.Job, Scheduled: d.Scheduled, OutOfTurn: d.OutOfTurn, Outcome: d.Outcome, Missed: d.Missed,
				Token: Token(d.Token), Took: d.Took, Err: d.Err,
			})
		}
	}
	if t, ok := t.(AssignTracer); ok {
		trace.Assign = func(ctx context.Context, d session.Assign) {
			t.Assign(ctx, AssignData{
				Path: d.Path, Name: d.Name, Member: d.Member, Item: d.Item, Event: d.Event, Attempt: d.Attempt, Err: d.Err, Token: Token(d.Token),
			})
		}
	}
}
