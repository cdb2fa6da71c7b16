package zkotel

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"go.opentelemetry.io/otel/trace"
)

// scope is the context of an acquisition, and then of its hold: the span in it is the acquisition's until the grant, and the
// hold's from then on. Its end and all other values are the caller's.
type scope struct {
	context.Context
	of      *tracer
	began   time.Time
	acquire trace.Span
	current atomic.Pointer[context.Context] // has the span

	mu    sync.Mutex
	over  bool           // the acquisition has ended with a hold
	hold  trace.Span     // nil unless held
	token zksync.Token   // of hold
	early []zksync.Token // of holds that ended before the acquisition did: see end
}

// key finds the scope of a tracer in a context, which may have scopes of several tracers.
type key struct{ of *tracer }

func (s *scope) Value(k any) any {
	if k == (key{s.of}) {
		return s
	}
	return (*s.current.Load()).Value(k)
}

// scopeOf is nil for a context that is not from AcquireStart.
func (t *tracer) scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(key{t}).(*scope)
	return s
}

// grant starts the span of the hold with start, unless that hold has ended already: a loss is reported in a goroutine of its
// own, which may run before the grant is reported.
func (s *scope) grant(token zksync.Token, start func(context.Context) (context.Context, trace.Span)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if slices.Contains(s.early, token) {
		return
	}
	ctx, hold := start(*s.current.Load())
	s.hold, s.token = hold, token
	s.current.Store(&ctx)
}

// end returns the span of the hold with this token, once. A hold has none if it was lost or given back before the acquisition
// ended: then the result is nil.
func (s *scope) end(token zksync.Token) (hold trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.hold != nil && s.token == token:
		hold, s.hold = s.hold, nil
	case !s.over:
		s.early = append(s.early, token)
	}
	return hold
}
