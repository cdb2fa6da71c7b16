package zkotel

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const scopeName = "github.com/go-menagerie/menagerie/observe/zkotel"

// New returns a tracer for zksync.WithTracer. Sessions with the same servers may share it.
func New(opts ...Option) zksync.Tracer {
	s := settingsOf(opts)
	t := &tracer{
		settings: s,
		spans:    s.traces.Tracer(scopeName),
		metrics:  metricsOf(s.meters.Meter(scopeName)),
		local:    local{locks: make(map[string]*lock)},
	}
	if s.propagate {
		return propagator{t}
	}
	return t
}

// tracer implements zksync.Tracer with the optional parts for waits, releases and losses.
type tracer struct {
	settings
	spans   trace.Tracer
	metrics metrics
	local   local
}

// propagator is a type of its own because its method costs requests.
type propagator struct{ *tracer }

// Propagate implements zksync.PropagationTracer. A span that is not sampled is not exported, so a link to it would lead nowhere.
func (p propagator) Propagate(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// remote is what a node's traceparent names. It is invalid for anything else that is there.
func remote(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	return trace.SpanContextFromContext(ctx)
}

// AcquireStart implements zksync.Tracer.
func (t *tracer) AcquireStart(ctx context.Context, data zksync.AcquireStartData) context.Context {
	o := t.object(data.Path, data.Name, data.Kind)
	s := &scope{Context: ctx, of: t, began: time.Now()}
	inner, span := t.spans.Start(ctx, o.title("acquire"), trace.WithAttributes(o.attributes()...))
	s.acquire = span
	s.current.Store(&inner)
	t.local.waits(data.Path)
	return s
}

// Wait implements zksync.WaitTracer.
func (t *tracer) Wait(ctx context.Context, data zksync.WaitData) {
	if s := t.scopeOf(ctx); s != nil {
		s.acquire.AddEvent("position", trace.WithAttributes(attribute.Int("lock.position", data.Position)))
	}
}

// AcquireEnd implements zksync.Tracer.
func (t *tracer) AcquireEnd(ctx context.Context, data zksync.AcquireEndData) {
	s := t.scopeOf(ctx)
	if s == nil {
		return
	}
	o, result := t.object(data.Path, data.Name, data.Kind), outcome(data.Err)
	t.metrics.acquired(ctx, o, result, data.Waited, data.Position)
	t.link(s, data, result)
	s.acquire.SetAttributes(attribute.String("lock.outcome", result))
	if data.Position >= 0 {
		s.acquire.SetAttributes(attribute.Int("lock.position", data.Position))
	}
	if data.Ahead != (zksync.Owner{}) {
		s.acquire.SetAttributes(attribute.String("lock.ahead", text(data.Ahead.String())))
	}
	if data.Err == nil {
		t.grant(s, o, data)
	}
	if !expected(result, data.Err) {
		s.acquire.SetStatus(codes.Error, text(data.Err.Error()))
	}
	s.acquire.End()
}

// grant starts the span of the hold.
func (t *tracer) grant(s *scope, o object, data zksync.AcquireEndData) {
	grant := grantOf(data.Token, data.Node)
	s.acquire.SetAttributes(grant...)
	s.grant(data.Token, func(ctx context.Context) (context.Context, trace.Span) {
		ctx, span := t.spans.Start(ctx, o.title("hold"), trace.WithAttributes(o.attributes(grant...)...))
		t.local.holds(data.Path, hold{data.Token, span.SpanContext()})
		return ctx, span
	})
}

// link links the span of an acquisition to what it waited for: holds of this process, else what the entry ahead says of itself.
func (t *tracer) link(s *scope, data zksync.AcquireEndData, outcome string) {
	var ahead []trace.SpanContext
	switch outcome {
	case granted:
		before := t.local.granted(data.Path, s.began)
		if before.IsValid() && data.Position == 0 { // else another process was between
			ahead = append(ahead, before)
		}
	case canceled, notAcquired:
		ahead = t.local.gaveUp(data.Path)
	default:
		t.local.gaveUp(data.Path)
	}
	if other := remote(data.AheadTrace); len(ahead) == 0 && other.IsValid() {
		ahead = append(ahead, other)
	}
	for _, a := range ahead {
		s.acquire.AddLink(trace.Link{SpanContext: a})
	}
}

// Release implements zksync.ReleaseTracer.
func (t *tracer) Release(ctx context.Context, data zksync.ReleaseData) {
	end := ending{token: data.Token, node: data.Node, held: data.Held, how: released}
	t.end(ctx, t.object(data.Path, data.Name, data.Kind), end)
}

// Lost implements zksync.LossTracer.
func (t *tracer) Lost(ctx context.Context, data zksync.LossData) {
	end := ending{token: data.Token, node: data.Node, held: data.Held, how: loss(data.Reason), reason: data.Reason, err: data.Err}
	t.end(ctx, t.object(data.Path, data.Name, data.Kind), end)
}

// ending is how a hold ended.
type ending struct {
	token       zksync.Token
	node        string
	held        time.Duration
	how, reason string
	err         error // of a loss
}

// end ends the span of a hold. A hold without one gets it now, as a child of the span in ctx.
func (t *tracer) end(ctx context.Context, o object, e ending) {
	t.metrics.held(ctx, o, e.how, e.held)
	var span trace.Span
	if s := t.scopeOf(ctx); s != nil {
		span = s.end(e.token)
	}
	if span != nil {
		t.local.left(o.path, e.token)
	} else {
		_, span = t.spans.Start(ctx, o.title("hold"), trace.WithTimestamp(time.Now().Add(-e.held)),
			trace.WithAttributes(o.attributes(grantOf(e.token, e.node)...)...))
	}
	span.SetAttributes(attribute.String("lock.end", e.how))
	if e.reason != "" {
		span.SetAttributes(attribute.String("lock.reason", e.reason))
	}
	if e.err != nil {
		span.SetStatus(codes.Error, text(e.err.Error()))
	}
	span.End()
}
